//! Extracts the descriptions of all types and fields from `k8s-openapi` and writes them, compressed, for the
//! library to include.
//!
//! Format: a line for each type (`name<TAB>description`), followed by a line for each field, indented by a
//! space.

use std::fmt::Write as _;
use std::{env, error::Error, fs, path::Path};

use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Generates the schemas of these kinds and of all types that they refer to.
macro_rules! generate {
    ($generator:ident, $($package:path: $($kind:ident)+;)+) => {
        $({
            use $package as package;
            $(ask::<package::$kind>(&mut $generator);)+
        })+
    };
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut definitions = SchemaGenerator::default();
    generate! { definitions,
        k8s_openapi::api::admissionregistration::v1:
            MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration;
        k8s_openapi::api::apps::v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        k8s_openapi::api::authentication::v1: SelfSubjectReview TokenRequest TokenReview;
        k8s_openapi::api::authorization::v1:
            LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview;
        k8s_openapi::api::autoscaling::v1: HorizontalPodAutoscaler Scale;
        k8s_openapi::api::autoscaling::v2: HorizontalPodAutoscaler;
        k8s_openapi::api::batch::v1: CronJob Job;
        k8s_openapi::api::certificates::v1: CertificateSigningRequest;
        k8s_openapi::api::coordination::v1: Lease;
        k8s_openapi::api::core::v1:
            Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
            PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount;
        k8s_openapi::api::discovery::v1: EndpointSlice;
        k8s_openapi::api::events::v1: Event;
        k8s_openapi::api::flowcontrol::v1: FlowSchema PriorityLevelConfiguration;
        k8s_openapi::api::networking::v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        k8s_openapi::api::node::v1: RuntimeClass;
        k8s_openapi::api::policy::v1: Eviction PodDisruptionBudget;
        k8s_openapi::api::rbac::v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        k8s_openapi::api::resource::v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        k8s_openapi::api::scheduling::v1: PriorityClass;
        k8s_openapi::api::storage::v1:
            CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass;
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1: CustomResourceDefinition;
        k8s_openapi::apimachinery::pkg::apis::meta::v1: DeleteOptions ListMeta Status;
        k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1: APIService;
    }
    let definitions = definitions.take_definitions(true);
    let mut text = String::new();
    for (name, definition) in &definitions {
        write_type(&mut text, name, definition)?;
    }
    let compressed = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 9);
    fs::write(Path::new(&env::var("OUT_DIR")?).join("descriptions"), compressed)?;
    Ok(())
}

fn ask<T: JsonSchema>(definitions: &mut SchemaGenerator) {
    definitions.subschema_for::<T>();
}

fn write_type(text: &mut String, name: &str, definition: &Value) -> std::fmt::Result {
    writeln!(text, "{name}\t{}", description(definition))?;
    for (field, schema) in definition["properties"].as_object().into_iter().flatten() {
        writeln!(text, " {field}\t{}", description(schema))?;
    }
    Ok(())
}

/// The description on one line, with escaped line breaks.
fn description(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.replace('\\', "\\\\").replace('\n', "\\n")
}
