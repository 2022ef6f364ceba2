//! The controllers that keep a cluster in order, one module for each.

mod disruption;
mod endpoints;
mod garbage;
mod namespaces;

use crate::manager::Entry;

/// All of them, by the names that Kubernetes has for them, with the service accounts that they act as.
pub const CONTROLLERS: &[Entry] = &[
    Entry {
        name: "disruption-controller",
        account: "disruption-controller",
        controller: |setup| Box::new(disruption::controller(setup)),
    },
    Entry {
        name: "endpoints-controller",
        account: "endpoint-controller",
        controller: |setup| Box::new(endpoints::endpoints(setup)),
    },
    Entry {
        name: "endpointslice-controller",
        account: "endpointslice-controller",
        controller: |setup| Box::new(endpoints::slices(setup)),
    },
    Entry {
        name: "endpointslice-mirroring-controller",
        account: "endpointslicemirroring-controller",
        controller: |setup| Box::new(endpoints::mirroring(setup)),
    },
    Entry {
        name: "garbage-collector-controller",
        account: "generic-garbage-collector",
        controller: |setup| Box::new(garbage::controller(setup)),
    },
    Entry {
        name: "namespace-controller",
        account: "namespace-controller",
        controller: |setup| Box::new(namespaces::controller(setup)),
    },
];
