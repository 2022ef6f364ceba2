//! The functions of the language, and those that Kubernetes adds.
