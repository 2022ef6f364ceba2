//! The controllers of kube-controller-manager that keep a cluster in order, one module for each, named as Kubernetes names them.

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

/// The parts that the manager hands to each of these controllers.
pub type Setup = controller::manager::Setup<Settings>;

/// The configuration that the process gives to its controllers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The certificates by which clients know the server, as PEM.
    pub root_ca: String,
    /// The key that signs the tokens of service accounts.
    pub signing_key: Option<Arc<SigningKey>>,
    /// The CA that signs client certificates.
    pub signer: Option<Signer>,
    /// How long a token that an account got by itself may be unused; a year where nobody says.
    pub unused_tokens: Option<Duration>,
}

/// All of them, by the names that Kubernetes has for them, with the service accounts that they act as.
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
