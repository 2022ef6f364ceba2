//! Test objects: ConfigMaps of about one kilobyte, for the store and for the API.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use model::selector::{Requirement, Target, Test};
use model::{Attributes, Encoded, ObjectKey, Resource, Selector, Uid};
use serde_json::json;
use store::{ListQuery, Precondition, WatchScope, Write};

/// The namespace of most objects.
pub const NAMESPACE: &str = "bench";

/// The payload size that makes an object about one kilobyte.
const PAYLOAD: usize = 750;

/// Creates objects that differ in name. Their bodies are built once, so that producing objects is nearly
/// free.
#[derive(Debug)]
pub struct Objects {
    resource: Resource,
    bodies: [Encoded; 2],
    next: AtomicU64,
}

impl Objects {
    /// Objects of a resource, about one kilobyte each.
    pub fn new(plural: &str) -> Self {
        Self::sized(plural, PAYLOAD)
    }

    /// Objects with this payload size.
    pub fn sized(plural: &str, payload: usize) -> Self {
        let body = |letter: &str| {
            let object = config_map("some-object-of-the-bench", &letter.repeat(payload));
            Encoded::new(object.as_object().expect("the literal is an object"))
        };
        Self { resource: Resource::new("", plural), bodies: [body("a"), body("b")], next: AtomicU64::new(0) }
    }

    /// A create with an unused name.
    pub fn create(&self) -> Write {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.create_with(number, vec![("app".to_owned(), "bench".to_owned())], Vec::new())
    }

    /// A create with labels and fields.
    pub fn create_with(
        &self,
        number: u64,
        labels: Vec<(String, String)>,
        fields: Vec<(String, String)>,
    ) -> Write {
        Write::Create {
            key: self.key(number),
            uid: Uid(format!("00000000-0000-4000-8000-{number:012x}")),
            attributes: Attributes::new(labels, fields),
            body: self.bodies[0].clone(),
        }
    }

    /// An update of an object of [`Objects::create`], with a body that differs from the previous update.
    pub fn update(&self, key: &ObjectKey, expect: Precondition, turn: usize) -> Write {
        Write::Update {
            key: key.clone(),
            expect,
            attributes: Attributes::new(vec![("app".to_owned(), "bench".to_owned())], Vec::new()),
            body: self.bodies[(turn + 1) % 2].clone(),
        }
    }

    fn key(&self, number: u64) -> ObjectKey {
        ObjectKey::new(&self.resource, NAMESPACE, &format!("object-{number:08}"))
    }

    /// The size of an object without its revision.
    pub fn size(&self) -> usize {
        self.bodies[0].len()
    }

    /// A list of the whole namespace.
    pub fn list(&self, limit: usize) -> ListQuery {
        ListQuery {
            resource: self.resource.clone(),
            namespace: Some(NAMESPACE.to_owned()),
            selector: Selector::default(),
            at: None,
            after: None,
            limit,
        }
    }

    /// A list of the objects with this label or field value.
    pub fn select(&self, target: Target, key: &str, value: &str) -> ListQuery {
        ListQuery { selector: one_value(target, key, value), ..self.list(500) }
    }

    /// A watch of the whole namespace.
    pub fn watch(&self) -> WatchScope {
        WatchScope {
            resource: self.resource.clone(),
            namespace: Some(NAMESPACE.to_owned()),
            name: None,
            selector: Selector::default(),
        }
    }

    /// A watch that matches none of the objects, as most watches of a cluster most of the time.
    pub fn idle_watch(&self, number: usize) -> WatchScope {
        let selector = one_value(Target::Label, "app", &format!("other-{number}"));
        WatchScope { selector, ..self.watch() }
    }
}

fn one_value(target: Target, key: &str, value: &str) -> Selector {
    let requirement = Requirement { target, key: key.to_owned(), test: Test::In(vec![value.to_owned()]) };
    Selector { requirements: vec![requirement] }
}

fn config_map(name: &str, payload: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app": "bench"},
            "uid": "00000000-0000-4000-8000-000000000000",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "data": {"payload": payload},
    })
}

/// The body of a create request for a ConfigMap.
pub fn create_body(name: &str) -> Bytes {
    let mut object = config_map(name, &"a".repeat(PAYLOAD));
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("uid");
        metadata.remove("creationTimestamp");
    }
    object.to_string().into()
}

/// A typical Pod: two containers with probes, resources, variables and volumes; about two kilobytes.
pub fn pod(name: &str) -> serde_json::Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080}, "periodSeconds": 5, "timeoutSeconds": 1});
    let resources = json!({
        "requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"},
    });
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app": "bench", "tier": "web", "release": "stable"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        },
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [
                {
                    "name": "web",
                    "image": "registry.example.com/web:1.2.3",
                    "args": ["--listen", ":8080", "--verbose"],
                    "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
                    "env": [
                        {"name": "MODE", "value": "production"},
                        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "web", "key": "token"}}},
                    ],
                    "resources": resources,
                    "livenessProbe": probe("/healthz"),
                    "readinessProbe": probe("/readyz"),
                    "volumeMounts": [
                        {"name": "config", "mountPath": "/etc/web", "readOnly": true},
                        {"name": "cache", "mountPath": "/var/cache/web"},
                    ],
                    "securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}},
                },
                {"name": "log", "image": "registry.example.com/log:4.5.6", "resources": resources},
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": "web"}},
                {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
            ],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}],
            "terminationGracePeriodSeconds": 30,
        },
    })
}

/// The body of a create request for a Pod.
pub fn pod_json(name: &str) -> Bytes {
    pod(name).to_string().into()
}

/// The same in protobuf.
pub fn pod_protobuf(name: &str) -> Bytes {
    kinds::protobuf::encode(kinds::schema::builtin(), &pod(name))
        .expect("the literal is a Pod, as a test sees")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_pod_are_the_same_pod() {
        let decoded = kinds::protobuf::decode(
            kinds::schema::builtin(),
            &pod_protobuf("a"),
            kinds::protobuf::TypeMeta::new("v1", "Pod"),
        )
        .unwrap();
        assert_eq!(decoded.value["spec"], pod("a")["spec"]);
    }
}
