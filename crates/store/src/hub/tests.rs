//! The hub, without an engine.
