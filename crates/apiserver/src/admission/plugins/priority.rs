//! `Priority`: resolves the PriorityClass of a Pod, or the default one.

use std::sync::Arc;

use model::object::{is_true, map_mut, number, present, text};
use model::{ObjectKey, Resource};
use serde_json::Value;

use crate::admission::informers::{InformerCache, PluginInformer};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The preemption policy of Pods whose class names none.
const DEFAULT_POLICY: &str = "PreemptLowerPriority";

struct PriorityClass {
    value: i64,
    policy: Option<String>,
    is_default: bool,
}

pub(super) struct Priority(Arc<InformerCache<PriorityClass>>);

impl Priority {
    pub fn new() -> Self {
        let read = |_: &ObjectKey, class: Object| {
            let policy = present(&class, &["preemptionPolicy"]).and_then(Value::as_str);
            Some(PriorityClass {
                value: number(&class, &["value"]),
                policy: policy.map(str::to_owned),
                is_default: is_true(&class, &["globalDefault"]),
            })
        };
        Self(InformerCache::new(Resource::new("scheduling.k8s.io", "priorityclasses"), read))
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.0.clone()
    }

    /// Name, value and preemption policy of a Pod's class.
    fn class(&self, named: &str) -> Result<(String, i64, Option<String>), String> {
        let classes = self.0.of("").unwrap_or_default();
        let found = if named.is_empty() {
            let defaults = classes.iter().filter(|(_, class)| class.is_default);
            match defaults.min_by_key(|(_, class)| class.value) {
                Some(found) => found,
                None => return Ok((String::new(), 0, Some(DEFAULT_POLICY.to_owned()))),
            }
        } else {
            let found = classes.get_key_value(named);
            found.ok_or_else(|| format!("no PriorityClass with name {named} was found"))?
        };
        let (name, class) = found;
        Ok((name.clone(), class.value, class.policy.clone()))
    }

    fn decide(&self, pod: &mut Object) -> Result<(), String> {
        let (name, value, policy) = self.class(text(pod, &["spec", "priorityClassName"]))?;
        let given = present(pod, &["spec", "priority"]).and_then(Value::as_i64);
        if let Some(given) = given.filter(|given| *given != value) {
            return Err(format!(
                "the integer value of priority ({given}) must not be provided in pod spec; \
                 priority admission controller computed {value} from the given PriorityClass name"
            ));
        }
        let given = text(pod, &["spec", "preemptionPolicy"]);
        if let Some(policy) = policy.as_deref().filter(|policy| !given.is_empty() && given != *policy) {
            return Err(format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
                 priority admission controller computed {policy} from the given PriorityClass name"
            ));
        }
        let spec = map_mut(pod, "spec");
        if !name.is_empty() {
            spec.insert("priorityClassName".to_owned(), name.into());
        }
        spec.insert("priority".to_owned(), value.into());
        spec.extend(policy.map(|policy| ("preemptionPolicy".to_owned(), policy.into())));
        Ok(())
    }
}

/// Keeps the priority that a Pod got when it was created.
fn keep(new: &mut Object, old: &Object) {
    for key in ["priority", "preemptionPolicy"] {
        if let (None, Some(value)) = (present(new, &["spec", key]), present(old, &["spec", key])) {
            let value = value.clone();
            map_mut(new, "spec").insert(key.to_owned(), value);
        }
    }
}

impl Plugin for Priority {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        match (object, request.old) {
            (Some(new), Some(old)) => keep(new, old),
            (Some(pod), None) => {
                if let Err(message) = self.decide(pod) {
                    return PluginResult::Done(Err(request.forbidden(Some(pod), message)));
                }
            }
            (None, _) => {}
        }
        PluginResult::OK
    }
}
