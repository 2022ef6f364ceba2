//! The controllers that keep a cluster in order, one module for each.

mod account_tokens;
mod claims;
mod cluster_roles;
mod disruption;
mod endpoints;
mod events;
mod following;
mod garbage;
mod jobs;
mod kinds;
mod namespaces;
mod protection;
mod quotas;
mod root_ca;
mod service_accounts;
mod signing;
mod signing_requests;
mod unused_tokens;
mod views;
mod volumes;

use crate::manager::Entry;

pub use events::expiry as event_expiry;

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
    Entry {
        name: "serviceaccount-controller",
        account: "service-account-controller",
        controller: |setup| Box::new(service_accounts::controller(setup)),
    },
    Entry {
        name: "serviceaccount-token-controller",
        account: "tokens-controller",
        controller: |setup| Box::new(account_tokens::controller(setup)),
    },
    Entry {
        name: "legacy-serviceaccount-token-cleaner-controller",
        account: "legacy-service-account-token-cleaner",
        controller: |setup| Box::new(unused_tokens::controller(setup)),
    },
    Entry {
        name: "root-ca-certificate-publisher-controller",
        account: "root-ca-cert-publisher",
        controller: |setup| Box::new(root_ca::controller(setup)),
    },
    Entry {
        name: "resourcequota-controller",
        account: "resourcequota-controller",
        controller: |setup| Box::new(quotas::controller(setup)),
    },
    Entry {
        name: "ttl-after-finished-controller",
        account: "ttl-after-finished-controller",
        controller: |setup| Box::new(jobs::controller(setup)),
    },
    Entry {
        name: "persistentvolumeclaim-protection-controller",
        account: "pvc-protection-controller",
        controller: |setup| Box::new(claims::controller(setup)),
    },
    Entry {
        name: "persistentvolume-protection-controller",
        account: "pv-protection-controller",
        controller: |setup| Box::new(volumes::controller(setup)),
    },
    Entry {
        name: "certificatesigningrequest-cleaner-controller",
        account: "certificate-controller",
        controller: |setup| Box::new(signing_requests::controller(setup)),
    },
    Entry {
        name: "certificatesigningrequest-signing-controller",
        account: "certificate-controller",
        controller: |setup| Box::new(signing::controller(setup)),
    },
    Entry {
        name: "clusterrole-aggregation-controller",
        account: "clusterrole-aggregation-controller",
        controller: |setup| Box::new(cluster_roles::controller(setup)),
    },
];
