//! The controllers that keep a cluster in order, one module for each.

mod namespaces;

use crate::manager::Entry;

/// All of them, by the names that Kubernetes has for them, with the service accounts that they act as.
pub const CONTROLLERS: &[Entry] = &[Entry {
    name: "namespace-controller",
    account: "namespace-controller",
    controller: |setup| Box::new(namespaces::controller(setup)),
}];
