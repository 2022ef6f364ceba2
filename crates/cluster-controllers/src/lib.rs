//! The controllers of kube-controller-manager that keep a cluster in order, one module each, with Kubernetes' names.

mod clusterrole_aggregation;
mod csr_cleaner;
mod csr_signing;
mod disruption;
mod endpoints;
mod endpointslice;
mod endpointslice_mirroring;
mod event_ttl;
mod garbage_collector;
mod kinds;
mod legacy_serviceaccount_token_cleaner;
mod namespace;
mod protection;
mod pv_protection;
mod pvc_protection;
mod resourcequota;
mod root_ca_certificate_publisher;
mod service_endpoints;
mod serviceaccount;
mod serviceaccount_token;
mod ttl_after_finished;
mod views;

use std::sync::Arc;
use std::time::Duration;

use controller::manager::Entry;
use process::{pki::Signer, signing::SigningKey};

pub use event_ttl::expiry as event_expiry;

/// The clients, informers and settings that the manager passes to each of these controllers.
pub type Setup = controller::manager::Setup<Settings>;

/// The configuration of the controllers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The CA certificates of the server, as PEM.
    pub root_ca: String,
    /// The key that signs service account tokens.
    pub signing_key: Option<Arc<SigningKey>>,
    /// The CA that signs client certificates.
    pub signer: Option<Signer>,
    /// The time after which an unused auto-generated token is invalidated; a year by default.
    pub unused_tokens: Option<Duration>,
}

/// All controllers by their Kubernetes names, with the service accounts that they act as.
pub const CONTROLLERS: &[Entry<Settings>] = &[
    Entry {
        name: "disruption-controller",
        account: "disruption-controller",
        controller: |setup| Box::new(disruption::controller(setup)),
    },
    Entry {
        name: "endpoints-controller",
        account: "endpoint-controller",
        controller: |setup| Box::new(endpoints::controller(setup)),
    },
    Entry {
        name: "endpointslice-controller",
        account: "endpointslice-controller",
        controller: |setup| Box::new(endpointslice::controller(setup)),
    },
    Entry {
        name: "endpointslice-mirroring-controller",
        account: "endpointslicemirroring-controller",
        controller: |setup| Box::new(endpointslice_mirroring::controller(setup)),
    },
    Entry {
        name: "garbage-collector-controller",
        account: "generic-garbage-collector",
        controller: |setup| Box::new(garbage_collector::controller(setup)),
    },
    Entry {
        name: "namespace-controller",
        account: "namespace-controller",
        controller: |setup| Box::new(namespace::controller(setup)),
    },
    Entry {
        name: "serviceaccount-controller",
        account: "service-account-controller",
        controller: |setup| Box::new(serviceaccount::controller(setup)),
    },
    Entry {
        name: "serviceaccount-token-controller",
        account: "tokens-controller",
        controller: |setup| Box::new(serviceaccount_token::controller(setup)),
    },
    Entry {
        name: "legacy-serviceaccount-token-cleaner-controller",
        account: "legacy-service-account-token-cleaner",
        controller: |setup| Box::new(legacy_serviceaccount_token_cleaner::controller(setup)),
    },
    Entry {
        name: "root-ca-certificate-publisher-controller",
        account: "root-ca-cert-publisher",
        controller: |setup| Box::new(root_ca_certificate_publisher::controller(setup)),
    },
    Entry {
        name: "resourcequota-controller",
        account: "resourcequota-controller",
        controller: |setup| Box::new(resourcequota::controller(setup)),
    },
    Entry {
        name: "ttl-after-finished-controller",
        account: "ttl-after-finished-controller",
        controller: |setup| Box::new(ttl_after_finished::controller(setup)),
    },
    Entry {
        name: "persistentvolumeclaim-protection-controller",
        account: "pvc-protection-controller",
        controller: |setup| Box::new(pvc_protection::controller(setup)),
    },
    Entry {
        name: "persistentvolume-protection-controller",
        account: "pv-protection-controller",
        controller: |setup| Box::new(pv_protection::controller(setup)),
    },
    Entry {
        name: "certificatesigningrequest-cleaner-controller",
        account: "certificate-controller",
        controller: |setup| Box::new(csr_cleaner::controller(setup)),
    },
    Entry {
        name: "certificatesigningrequest-signing-controller",
        account: "certificate-controller",
        controller: |setup| Box::new(csr_signing::controller(setup)),
    },
    Entry {
        name: "clusterrole-aggregation-controller",
        account: "clusterrole-aggregation-controller",
        controller: |setup| Box::new(clusterrole_aggregation::controller(setup)),
    },
];
