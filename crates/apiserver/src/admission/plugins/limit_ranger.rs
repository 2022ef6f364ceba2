//! `LimitRanger`: defaults and checks Pods and PersistentVolumeClaims by the LimitRanges of their namespace.

use std::sync::Arc;

use kinds::admission::limit_range::{LimitRange, joined};
use model::{ObjectKey, Resource};

use crate::admission::informers::{InformerCache, PluginInformer};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;
use crate::verbs::text;

pub(super) struct LimitRanger(Arc<InformerCache<LimitRange>>);

impl LimitRanger {
    pub fn new() -> Self {
        let read = |_: &ObjectKey, object: Object| Some(LimitRange::read(&object));
        Self(InformerCache::new(Resource::new("", "limitranges"), read))
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.0.clone()
    }
}

impl Plugin for LimitRanger {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let is_pod = match target.operation {
            Operation::Create => target.is_pod(),
            Operation::Update => target.is("", "pods", "resize"),
            Operation::Delete | Operation::Connect => false,
        };
        let is_claim = target.is("", "persistentvolumeclaims", "") && target.operation != Operation::Delete;
        Phases { mutates: is_pod, validates: is_pod || is_claim }
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        if let (Some(pod), Some(ranges)) = (object, self.0.of(request.namespace()))
            && !is_ending(request)
        {
            ranges.values().for_each(|range| range.complete(pod));
        }
        PluginResult::OK
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let (Some(new), Some(ranges)) = (object, self.0.of(request.namespace())) else {
            return PluginResult::OK;
        };
        if is_ending(request) {
            return PluginResult::OK;
        }
        for range in ranges.values() {
            let is_claim = request.call.resource_type.plural == "persistentvolumeclaims";
            let errors = if is_claim { range.check_claim(new) } else { range.check_pod(new) };
            if !errors.is_empty() {
                return PluginResult::Done(Err(request.forbidden(object, joined(&errors))));
            }
        }
        PluginResult::OK
    }
}

fn is_ending(request: &AdmissionAttributes<'_>) -> bool {
    request.old.is_some_and(|old| !text(old, "deletionTimestamp").is_empty())
}
