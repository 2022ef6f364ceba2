//! The built-in admission plugins, and their construction by name.

mod always_pull_images;
mod certificates;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod extended_resource_toleration;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;
mod node_restriction;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_containers;
mod pod_node_selector;
mod pod_security;
mod pod_toleration_restriction;
mod pod_topology_labels;
pub(super) mod policies;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_classes;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use std::sync::Arc;

use kinds::admission::configuration::AdmissionConfiguration;

use super::informers::PluginInformer;
use super::webhooks::Webhooks;
use super::{AdmissionAttributes, AdmissionTarget, Phases, Plugin, PluginResult};
use crate::registry::Object;
use crate::webhook::Services;
use always_pull_images::AlwaysPullImages;
use certificates::{
    CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest,
};
use default_ingress_class::DefaultIngressClass;
use default_storage_class::DefaultStorageClass;
use default_toleration_seconds::DefaultTolerationSeconds;
use deny_service_external_ips::DenyServiceExternalIps;
use extended_resource_toleration::ExtendedResourceToleration;
use limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology;
use limit_ranger::LimitRanger;
use namespace_auto_provision::NamespaceAutoProvision;
use namespace_exists::NamespaceExists;
use namespace_lifecycle::NamespaceLifecycle;
use node_restriction::NodeRestriction;
use owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement;
use persistent_volume_claim_resize::PersistentVolumeClaimResize;
use pod_node_selector::PodNodeSelector;
use pod_security::PodSecurity;
use pod_toleration_restriction::PodTolerationRestriction;
use pod_topology_labels::PodTopologyLabels;
use policies::{MutatingAdmissionPolicy, ParamAuthorization, ValidatingAdmissionPolicy};
use priority::Priority;
use resource_quota::ResourceQuota;
use runtime_class::RuntimeClass;
use service_account::ServiceAccount;
use storage_classes::StorageClasses;
use storage_object_in_use_protection::StorageObjectInUseProtection;
use taint_nodes_by_condition::TaintNodesByCondition;

/// Builds the plugins in their order.
#[derive(Default)]
pub(super) struct PluginBuilder {
    services: Services,
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// Their informers.
    pub informers: Vec<Arc<dyn PluginInformer>>,
    configuration: AdmissionConfiguration,
    /// Shared by two plugins.
    classes: Option<StorageClasses>,
}

impl PluginBuilder {
    /// An empty builder with the operator's plugin configuration.
    pub fn new(configuration: AdmissionConfiguration, services: Services) -> Self {
        Self { configuration, services, ..Self::default() }
    }

    fn webhooks(&mut self, is_mutating: bool) -> Arc<dyn Plugin> {
        let users = match is_mutating {
            true => self.configuration.mutating_webhook_users.clone(),
            false => self.configuration.validating_webhook_users.clone(),
        };
        let webhooks = Webhooks::new(is_mutating, &self.services, users);
        self.informers.push(webhooks.informer());
        Arc::new(webhooks)
    }

    /// Adds the plugin of this name. Names without a plugin here are accepted and do nothing.
    pub fn add(&mut self, name: &str) {
        let plugin: Arc<dyn Plugin> = match name {
            "NamespaceLifecycle" => Arc::new(NamespaceLifecycle),
            "LimitPodHardAntiAffinityTopology" => Arc::new(LimitPodHardAntiAffinityTopology),
            "LimitRanger" => {
                let ranger = LimitRanger::new();
                self.informers.push(ranger.informer());
                Arc::new(ranger)
            }
            "ServiceAccount" => {
                let accounts = ServiceAccount::new();
                self.informers.push(accounts.informer());
                Arc::new(accounts)
            }
            "TaintNodesByCondition" => Arc::new(TaintNodesByCondition),
            "AlwaysPullImages" => Arc::new(AlwaysPullImages),
            "Priority" => {
                let priority = Priority::new();
                self.informers.push(priority.informer());
                Arc::new(priority)
            }
            "DefaultTolerationSeconds" => Arc::new(DefaultTolerationSeconds),
            "ExtendedResourceToleration" => Arc::new(ExtendedResourceToleration),
            "DefaultStorageClass" => Arc::new(DefaultStorageClass(self.classes())),
            "StorageObjectInUseProtection" => Arc::new(StorageObjectInUseProtection),
            "PersistentVolumeClaimResize" => Arc::new(PersistentVolumeClaimResize(self.classes())),
            "RuntimeClass" => Arc::new(RuntimeClass),
            "DefaultIngressClass" => {
                let default = DefaultIngressClass::new();
                self.informers.push(default.informer());
                Arc::new(default)
            }
            "PodSecurity" => {
                let security = PodSecurity::new(self.configuration.pod_security.clone());
                self.informers.push(security.informer());
                Arc::new(security)
            }
            "MutatingAdmissionPolicy" => {
                let policies = MutatingAdmissionPolicy::new();
                self.informers.extend(policies.informers());
                Arc::new(policies)
            }
            "ValidatingAdmissionPolicy" => {
                let policies = ValidatingAdmissionPolicy::new();
                self.informers.extend(policies.informers());
                Arc::new(policies)
            }
            "CertificateApproval" => Arc::new(CertificateApproval),
            "CertificateSigning" => Arc::new(CertificateSigning),
            "ClusterTrustBundleAttest" => Arc::new(ClusterTrustBundleAttest),
            "CertificateSubjectRestriction" => Arc::new(CertificateSubjectRestriction),
            "PodTopologyLabels" => Arc::new(PodTopologyLabels),
            "NamespaceAutoProvision" => Arc::new(NamespaceAutoProvision),
            "NamespaceExists" => Arc::new(NamespaceExists),
            "NodeRestriction" => Arc::new(NodeRestriction),
            "OwnerReferencesPermissionEnforcement" => Arc::new(OwnerReferencesPermissionEnforcement),
            "PodNodeSelector" => Arc::new(PodNodeSelector),
            "PodTolerationRestriction" => Arc::new(PodTolerationRestriction),
            "MutatingAdmissionWebhook" => self.webhooks(true),
            "ValidatingAdmissionWebhook" => self.webhooks(false),
            "ResourceQuota" => {
                let quota = ResourceQuota::new();
                self.informers.push(quota.informer());
                Arc::new(quota)
            }
            "DenyServiceExternalIPs" => Arc::new(DenyServiceExternalIps),
            "AlwaysDeny" => Arc::new(AlwaysDeny),
            _ => return,
        };
        self.plugins.push(plugin);
    }

    /// Adds the plugins that cannot be disabled.
    pub fn add_permanent(&mut self) {
        self.plugins.push(Arc::new(ParamAuthorization));
    }

    fn classes(&mut self) -> StorageClasses {
        let Self { classes, informers, .. } = self;
        let make = || {
            let classes = StorageClasses::new();
            informers.push(classes.informer());
            classes
        };
        classes.get_or_insert_with(make).clone()
    }
}

/// The newest class; the first by name if several are equally old.
fn newest<'a>(classes: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    classes.min_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0))).map(|(name, _)| name)
}

/// The plugin `AlwaysDeny`: refuses every request.
struct AlwaysDeny;

impl Plugin for AlwaysDeny {
    fn handles(&self, _target: AdmissionTarget<'_>) -> Phases {
        Phases::both(true)
    }

    fn connects(&self) -> bool {
        true
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        PluginResult::Done(Err(
            request.forbidden(object.as_deref(), "admission control is denying all modifications")
        ))
    }
}
