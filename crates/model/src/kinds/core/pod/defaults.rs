//! What Kubernetes fills into the spec of a pod.

use serde_json::Value;

use crate::kinds::Object;
use crate::kinds::object::{map_mut, set_default};

/// Fills in what a client left out of a template of pods.
pub(in crate::kinds) fn default_template(template: &mut Object) {
    default_spec(map_mut(template, "spec"));
}

/// Fills in what a client left out of the spec of a pod, in a template too.
fn default_spec(spec: &mut Object) {
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "schedulerName", "default-scheduler");
    spec.entry("securityContext").or_insert_with(|| Value::Object(Object::new()));
    spec.entry("terminationGracePeriodSeconds").or_insert_with(|| 30.into());
}
