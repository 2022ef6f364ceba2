//! Tests that see everything: the real binary, started as a person starts it.

mod failures;
mod kube_rs;
mod lifecycle;
mod readme;
mod server;
