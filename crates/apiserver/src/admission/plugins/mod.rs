//! The plugins, a file for those of one subject, and how they are made by name.

mod certificates;
mod images;
mod ingress;
mod limit_ranger;
mod namespace_lifecycle;
mod namespaces;
mod node_restriction;
mod owners;
mod placement;
mod pod_security;
pub(super) mod policies;
mod priority;
mod quota;
mod runtime_class;
mod service_account;
mod storage;
mod tolerations;
mod topology;
mod tree;

use std::sync::Arc;

use kinds::admission::configuration::AdmissionConfiguration;

use super::follow::Follows;
use super::webhooks::Webhooks;
use super::{Phases, Plugin, Request, Step, Target};
use crate::registry::Object;
use crate::webhook::Services;
use storage::StorageClasses;

/// Plugins as they are made one after the other, in their order.
#[derive(Default)]
pub(super) struct Built {
    services: Services,
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// What they follow.
    pub followed: Vec<Arc<dyn Follows>>,
    configuration: AdmissionConfiguration,
    /// Two of them know storage classes.
    classes: Option<StorageClasses>,
}

impl Built {
    /// With nothing yet, what an operator says of plugins, and where services are found.
    pub fn new(configuration: AdmissionConfiguration, services: Services) -> Self {
        Self { configuration, services, ..Self::default() }
    }

    fn webhooks(&mut self, is_mutating: bool) -> Arc<dyn Plugin> {
        let users = match is_mutating {
            true => self.configuration.mutating_webhook_users.clone(),
            false => self.configuration.validating_webhook_users.clone(),
        };
        let webhooks = Webhooks::new(is_mutating, &self.services, users);
        self.followed.push(webhooks.followed());
        Arc::new(webhooks)
    }

    /// Makes the plugin of this name. A name that has no plugin of its own stands for nothing that has to be asked.
    pub fn add(&mut self, name: &str) {
        let plugin: Arc<dyn Plugin> = match name {
            "NamespaceLifecycle" => Arc::new(namespace_lifecycle::NamespaceLifecycle),
            "LimitPodHardAntiAffinityTopology" => Arc::new(tolerations::LimitPodHardAntiAffinityTopology),
            "LimitRanger" => {
                let ranger = limit_ranger::LimitRanger::new();
                self.followed.push(ranger.followed());
                Arc::new(ranger)
            }
            "ServiceAccount" => {
                let accounts = service_account::ServiceAccount::new();
                self.followed.push(accounts.followed());
                Arc::new(accounts)
            }
            "TaintNodesByCondition" => Arc::new(tolerations::TaintNodesByCondition),
            "AlwaysPullImages" => Arc::new(images::AlwaysPullImages),
            "Priority" => {
                let priority = priority::Priority::new();
                self.followed.push(priority.followed());
                Arc::new(priority)
            }
            "DefaultTolerationSeconds" => Arc::new(tolerations::DefaultTolerationSeconds),
            "ExtendedResourceToleration" => Arc::new(tolerations::ExtendedResourceToleration),
            "DefaultStorageClass" => Arc::new(storage::DefaultStorageClass(self.classes())),
            "StorageObjectInUseProtection" => Arc::new(storage::StorageObjectInUseProtection),
            "PersistentVolumeClaimResize" => Arc::new(storage::PersistentVolumeClaimResize(self.classes())),
            "RuntimeClass" => Arc::new(runtime_class::RuntimeClass),
            "DefaultIngressClass" => {
                let default = ingress::DefaultIngressClass::new();
                self.followed.push(default.followed());
                Arc::new(default)
            }
            "PodSecurity" => {
                let security = pod_security::PodSecurity::new(self.configuration.pod_security.clone());
                self.followed.push(security.followed());
                Arc::new(security)
            }
            "MutatingAdmissionPolicy" => {
                let policies = policies::MutatingAdmissionPolicy::new();
                self.followed.extend(policies.follows());
                Arc::new(policies)
            }
            "ValidatingAdmissionPolicy" => {
                let policies = policies::ValidatingAdmissionPolicy::new();
                self.followed.extend(policies.follows());
                Arc::new(policies)
            }
            "CertificateApproval" => Arc::new(certificates::CertificateApproval),
            "CertificateSigning" => Arc::new(certificates::CertificateSigning),
            "ClusterTrustBundleAttest" => Arc::new(certificates::ClusterTrustBundleAttest),
            "CertificateSubjectRestriction" => Arc::new(certificates::CertificateSubjectRestriction),
            "PodTopologyLabels" => Arc::new(topology::PodTopologyLabels),
            "NamespaceAutoProvision" => Arc::new(namespaces::NamespaceAutoProvision),
            "NamespaceExists" => Arc::new(namespaces::NamespaceExists),
            "NodeRestriction" => Arc::new(node_restriction::NodeRestriction),
            "OwnerReferencesPermissionEnforcement" => Arc::new(owners::OwnerReferencesPermissionEnforcement),
            "PodNodeSelector" => Arc::new(placement::PodNodeSelector),
            "PodTolerationRestriction" => Arc::new(placement::PodTolerationRestriction),
            "MutatingAdmissionWebhook" => self.webhooks(true),
            "ValidatingAdmissionWebhook" => self.webhooks(false),
            "ResourceQuota" => {
                let quota = quota::ResourceQuota::new();
                self.followed.push(quota.followed());
                Arc::new(quota)
            }
            "DenyServiceExternalIPs" => Arc::new(ingress::DenyServiceExternalIps),
            "AlwaysDeny" => Arc::new(AlwaysDeny),
            _ => return,
        };
        self.plugins.push(plugin);
    }

    /// Makes what no switch switches off.
    pub fn add_permanent(&mut self) {
        self.plugins.push(Arc::new(policies::ParameterReaders));
    }

    fn classes(&mut self) -> StorageClasses {
        let Self { classes, followed, .. } = self;
        let make = || {
            let classes = StorageClasses::new();
            followed.push(classes.followed());
            classes
        };
        classes.get_or_insert_with(make).clone()
    }
}

/// The class that was made last; of those that were made at once the first by name.
fn newest<'a>(classes: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    classes.min_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0))).map(|(name, _)| name)
}

/// Refuses everything.
struct AlwaysDeny;

impl Plugin for AlwaysDeny {
    fn handles(&self, _target: Target<'_>) -> Phases {
        Phases::both(true)
    }

    fn connects(&self) -> bool {
        true
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        Step::Done(
            Err(request.forbidden(object.as_deref(), "admission control is denying all modifications")),
        )
    }
}
