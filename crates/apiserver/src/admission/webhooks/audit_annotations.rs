//! Audit annotations of admission webhooks.

use kinds::audit::Level;
use serde_json::{Value, json};

use super::hook::Hook;
use crate::admission::AdmissionAttributes;

/// One webhook call of a request.
pub(super) struct AuditAnnotations<'a> {
    pub request: &'a AdmissionAttributes<'a>,
    pub hook: &'a Hook,
    /// Its index in the order of execution.
    pub index: usize,
}

impl AuditAnnotations<'_> {
    /// Records whether the webhook changed the object.
    pub fn mutated(&self, is_changed: bool) {
        self.note("mutation", || self.about(&format!(r#""mutated":{is_changed}"#)));
    }

    /// Records the patch of the webhook.
    pub fn patched(&self, patch: &Value) {
        if self.request.call.trail.level() >= Level::Request {
            self.note("patch", || self.about(&format!(r#""patch":{patch},"patchType":"JSONPatch""#)));
        }
    }

    /// Records that the call failed and the request was admitted.
    pub fn failed_open(&self, kind: &str) {
        self.note(&format!("failed-open.{kind}"), || self.hook.name.clone());
    }

    /// A JSON text in the field order of Kubernetes.
    fn about(&self, rest: &str) -> String {
        let [configuration, webhook] = [&self.hook.configuration, &self.hook.name].map(|name| json!(name));
        format!(r#"{{"configuration":{configuration},"webhook":{webhook},{rest}}}"#)
    }

    fn note(&self, prefix: &str, value: impl FnOnce() -> String) {
        let round = u8::from(self.request.is_again());
        let index = self.index;
        let key = format!("{prefix}.webhook.admission.k8s.io/round_{round}_index_{index}");
        self.request.annotate(&key, value);
    }
}
