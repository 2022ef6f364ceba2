//! Tests that see everything: the real binary, started as a person starts it.

mod failures;
mod lifecycle;
mod server;
