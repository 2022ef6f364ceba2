//! `DefaultIngressClass`: an Ingress without a class gets the default IngressClass.

use std::sync::Arc;

use model::object::{map_mut, present, text};
use model::{ObjectKey, Resource};

use crate::admission::informers::{InformerCache, PluginInformer};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The plugin `DefaultIngressClass`; its cache has the creation times of default classes.
pub(super) struct DefaultIngressClass(Arc<InformerCache<String>>);

impl DefaultIngressClass {
    /// Caches the default classes with their creation times.
    pub fn new() -> Self {
        let read = |_: &ObjectKey, class: Object| {
            let path = ["metadata", "annotations", "ingressclass.kubernetes.io/is-default-class"];
            (text(&class, &path) == "true")
                .then(|| text(&class, &["metadata", "creationTimestamp"]).to_owned())
        };
        Self(InformerCache::new(Resource::new("networking.k8s.io", "ingressclasses"), read))
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.0.clone()
    }
}

impl Plugin for DefaultIngressClass {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let is_ingress = target.is("networking.k8s.io", "ingresses", "");
        Phases::mutating(is_ingress && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(ingress) = object else { return PluginResult::OK };
        let annotated = present(ingress, &["metadata", "annotations", "kubernetes.io/ingress.class"]);
        if annotated.is_some() || present(ingress, &["spec", "ingressClassName"]).is_some() {
            return PluginResult::OK;
        }
        let defaults = self.0.of("").unwrap_or_default();
        let newest = super::newest(defaults.iter().map(|(name, made)| (name.as_str(), made.as_str())));
        if let Some(name) = newest {
            map_mut(ingress, "spec").insert("ingressClassName".to_owned(), name.into());
        }
        PluginResult::OK
    }
}
