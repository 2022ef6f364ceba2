//! The network: `DefaultIngressClass` and `DenyServiceExternalIPs`.

use std::sync::Arc;

use model::object::{items, map_mut, present, text};
use model::{ObjectKey, Resource};

use crate::admission::follow::{Follows, Mirror};
use crate::admission::{Operation, Phases, Plugin, Request, Step, Target};
use crate::registry::Object;

/// An ingress that names no class gets the default one.
pub(super) struct DefaultIngressClass(Arc<Mirror<String>>);

impl DefaultIngressClass {
    /// Knows the default classes, and when they were made.
    pub fn new() -> Self {
        let read = |_: &ObjectKey, class: Object| {
            let path = ["metadata", "annotations", "ingressclass.kubernetes.io/is-default-class"];
            (text(&class, &path) == "true")
                .then(|| text(&class, &["metadata", "creationTimestamp"]).to_owned())
        };
        Self(Mirror::new(Resource::new("networking.k8s.io", "ingressclasses"), read))
    }

    pub fn followed(&self) -> Arc<dyn Follows> {
        self.0.clone()
    }
}

impl Plugin for DefaultIngressClass {
    fn handles(&self, target: Target<'_>) -> Phases {
        let is_ingress = target.is("networking.k8s.io", "ingresses", "");
        Phases::mutating(is_ingress && target.operation == Operation::Create)
    }

    fn admit<'a>(&'a self, _request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(ingress) = object else { return Step::OK };
        let annotated = present(ingress, &["metadata", "annotations", "kubernetes.io/ingress.class"]);
        if annotated.is_some() || present(ingress, &["spec", "ingressClassName"]).is_some() {
            return Step::OK;
        }
        let defaults = self.0.of("").unwrap_or_default();
        let newest = super::newest(defaults.iter().map(|(name, made)| (name.as_str(), made.as_str())));
        if let Some(name) = newest {
            map_mut(ingress, "spec").insert("ingressClassName".to_owned(), name.into());
        }
        Step::OK
    }
}

/// Services take no traffic of addresses that nobody gave to the cluster.
pub(super) struct DenyServiceExternalIps;

impl Plugin for DenyServiceExternalIps {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::validating(target.is("", "services", "") && target.operation != Operation::Delete)
    }

    fn validate<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a Object>) -> Step<'a> {
        const PATH: [&str; 2] = ["spec", "externalIPs"];
        let Some(service) = object else { return Step::OK };
        let had =
            |address| request.old.is_some_and(|old| items(old, &PATH).iter().any(|known| known == address));
        if items(service, &PATH).iter().all(had) {
            return Step::OK;
        }
        let message = "Use of external IPs is denied by admission control";
        Step::Done(Err(request.forbidden(object, message)))
    }
}
