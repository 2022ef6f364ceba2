//! What makes a well-behaved client of a Kubernetes API that acts on what it sees.

pub mod housekeeping;
