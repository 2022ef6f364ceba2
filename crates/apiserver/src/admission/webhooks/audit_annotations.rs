//! What the audit log gets to know of webhooks.

use kinds::audit::Level;
use serde_json::{Value, json};

use super::hook::Hook;
use crate::admission::AdmissionAttributes;

/// A webhook in a request.
pub(super) struct AuditAnnotations<'a> {
    pub request: &'a AdmissionAttributes<'a>,
    pub hook: &'a Hook,
    /// Its place among all webhooks.
    pub index: usize,
}

impl AuditAnnotations<'_> {
    /// Whether it has changed the object.
    pub fn mutated(&self, is_changed: bool) {
        self.note("mutation", || self.about(&format!(r#""mutated":{is_changed}"#)));
    }

    /// How.
    pub fn patched(&self, patch: &Value) {
        if self.request.call.trail.level() >= Level::Request {
            self.note("patch", || self.about(&format!(r#""patch":{patch},"patchType":"JSONPatch""#)));
        }
    }

    /// It could not be asked, and the request goes on.
    pub fn failed_open(&self, kind: &str) {
        self.note(&format!("failed-open.{kind}"), || self.hook.name.clone());
    }

    /// In the order of Kubernetes, for the log has it as a text.
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
