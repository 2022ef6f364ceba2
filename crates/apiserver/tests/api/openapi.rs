//! OpenAPI documents as clients read them.

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::custom_resources::{CRDS, crd};

fn without_descriptions(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, field)| !(*key == "description" && field.is_string()));
            kept.map(|(key, field)| (key.clone(), without_descriptions(field))).collect()
        }
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn the_index_leads_to_the_documents() {
    let client = Client::new().await;
    let index = client.get("/openapi/v3").await.json();
    let address = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert!(address.starts_with("/openapi/v3/api/v1?hash="), "{address}");
    let document = client.get(&address).await;
    assert_eq!(document.code, 200);
    assert_eq!(document.headers["cache-control"], "public, immutable");
    let tag = document.headers["etag"].to_str().unwrap().to_owned();
    let again = client.send(Method::GET, &address, &[("if-none-match", &tag)], b"").await;
    assert_eq!((again.code, again.bytes.len()), (304, 0));
    assert_eq!(client.get("/openapi/v3/apis/nothing.example/v1").await.code, 404);
}

#[tokio::test]
async fn schemas_are_those_of_kubernetes() {
    let client = Client::new().await;
    let document = client.get("/openapi/v3/api/v1").await.json();
    let schemas = &document["components"]["schemas"];
    let config_map = &schemas["io.k8s.api.core.v1.ConfigMap"];
    assert!(config_map["properties"]["data"]["description"].as_str().unwrap().len() > 20);
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
    assert_eq!(
        without_descriptions(config_map),
        json!({
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "binaryData": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
                "data": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
                "immutable": {"type": "boolean"},
                "kind": {"type": "string"},
                "metadata": {"default": {}, "allOf": [reference(&format!("{meta}.ObjectMeta"))]},
            },
            "x-kubernetes-group-version-kind": [{"group": "", "kind": "ConfigMap", "version": "v1"}],
        })
    );
    assert_eq!(
        without_descriptions(&schemas[format!("{meta}.ObjectMeta")]["properties"]["ownerReferences"]),
        json!({
            "type": "array",
            "items": {"default": {}, "allOf": [reference(&format!("{meta}.OwnerReference"))]},
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-list-type": "map",
            "x-kubernetes-patch-merge-key": "uid",
            "x-kubernetes-patch-strategy": "merge",
        })
    );
    assert!(schemas["io.k8s.api.core.v1.ConfigMapList"].is_object());
}

/// kubectl looks for `fieldValidation` among the parameters of a patch before it leaves validation to the server.
#[tokio::test]
async fn operations_say_what_they_take() {
    let client = Client::new().await;
    let document = client.get("/openapi/v3/api/v1").await.json();
    let path = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"];
    let patch = &path["patch"];
    let names: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().map(|each| each["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    assert_eq!(patch["operationId"], "patchCoreV1NamespacedConfigMap");
    let everywhere = &document["paths"]["/api/v1/configmaps"]["get"];
    assert_eq!(everywhere["operationId"], "listCoreV1ConfigMapForAllNamespaces");
    let reference = |answer: &Value| answer["content"]["application/json"]["schema"]["$ref"].clone();
    let of = |plural: &str, method: &str, code: &str| {
        let path = format!("/api/v1/namespaces/{{namespace}}/{plural}");
        reference(&document["paths"][path][method]["responses"][code])
    };
    let schema = |name: &str| format!("#/components/schemas/io.k8s.{name}");
    assert_eq!(of("pods/{name}/binding", "post", "201"), schema("api.core.v1.Binding"));
    assert_eq!(of("pods/{name}", "delete", "200"), schema("api.core.v1.Pod"));
    assert_eq!(of("configmaps/{name}", "delete", "200"), schema("apimachinery.pkg.apis.meta.v1.Status"));
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let client = Client::new().await;
    for path in ["/openapi/v2", "/openapi/v3/api/v1"] {
        let document = client.get(path).await.json();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 100, "{path}");
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some_and(|to| !to.is_null()), "{path}: {reference}");
        }
    }
}

/// The message starts with the version of the dialect, then title and version.
#[tokio::test]
async fn older_clients_get_protobuf() {
    let client = Client::new().await;
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = client.send(Method::GET, "/openapi/v2", &[("accept", accept)], b"").await;
    assert_eq!(answer.headers["content-type"], "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    assert_eq!(&answer.bytes[..20], b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12");
}

#[tokio::test]
async fn a_client_gets_a_document_in_the_form_that_it_asks_for_or_none() {
    let client = Client::new().await;
    let (v2, v3) = (
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    );
    let asked = v3.replace(".v1.0", "@v1.0");
    for (path, accept, expected) in [
        ("/openapi/v3/apis/apps/v1", &*asked, v3),
        ("/openapi/v3/apis/apps/v1", v3, v3),
        ("/openapi/v3/apis/apps/v1", &format!("application/json;q=0.1,{v3};q=0.5"), v3),
        ("/openapi/v3/apis/apps/v1", "application/*", "application/json"),
        ("/openapi/v3/apis/apps/v1", "text/html,application/json;q=0.1", "application/json"),
        ("/openapi/v3/apis/apps/v1", v2, ""),
        ("/openapi/v3/apis/apps/v1", "application/yaml", ""),
        ("/openapi/v2", v3, ""),
        ("/openapi/v2", v2, v2),
    ] {
        let answer = client.send(Method::GET, path, &[("accept", accept)], b"").await;
        let shown = answer.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
        let code = if expected.is_empty() { 406 } else { 200 };
        assert_eq!((answer.code, shown), (code, expected), "{path} {accept}");
        assert_eq!(answer.bytes.is_empty(), expected.is_empty(), "{path} {accept}");
        assert!(answer.headers.get_all("vary").iter().any(|vary| vary == "Accept"));
    }
    let json = client.get("/openapi/v3/apis/apps/v1").await;
    let message = client.send(Method::GET, "/openapi/v3/apis/apps/v1", &[("accept", v3)], b"").await;
    assert_eq!(json.headers["etag"], message.headers["etag"]);
    assert!(message.bytes.starts_with(b"\x0a\x053.0.0\x12\x12\x0a\x0aKubernetes\x32\x041.35"));
    let old = client.get("/openapi/v3/apis/apps/v1?hash=old").await;
    let tag = json.headers["etag"].to_str().unwrap().trim_matches('"');
    assert_eq!(
        (old.code, old.headers["location"].to_str().unwrap()),
        (301, &*format!("/openapi/v3/apis/apps/v1?hash={tag}"))
    );
}

#[tokio::test]
async fn a_new_crd_is_in_the_documents_at_once() {
    let client = Client::new().await;
    let paths = |index: &Value| index["paths"].as_object().unwrap().clone();
    assert!(!paths(&client.get("/openapi/v3").await.json()).contains_key("apis/example.io/v1"));
    let old = client.get("/openapi/v2").await.headers["etag"].clone();
    client.create(CRDS, &crd()).await;
    let index = paths(&client.get("/openapi/v3").await.json());
    let address = index["apis/example.io/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = client.get(&address).await.json();
    let widget = &document["components"]["schemas"]["io.example.v1.Widget"];
    assert_eq!(
        widget["properties"]["spec"]["properties"]["replicas"],
        json!({"type": "integer", "default": 1})
    );
    assert_eq!(
        widget["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let kind = json!([{"group": "example.io", "version": "v1", "kind": "Widget"}]);
    assert_eq!(widget["x-kubernetes-group-version-kind"], kind);
    assert_eq!(widget["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.color"}]));
    let one = &document["paths"]["/apis/example.io/v1/namespaces/{namespace}/widgets/{name}"];
    let patches: Vec<&String> = one["patch"]["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(
        patches,
        ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    );
    let scale = &document["paths"]["/apis/example.io/v1/namespaces/{namespace}/widgets/{name}/scale"];
    assert_eq!(
        scale["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"],
        "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"
    );
    let new = client.get("/openapi/v2").await;
    assert_ne!(new.headers["etag"], old);
    let widget = &new.json()["definitions"]["io.example.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["replicas"], json!({"type": "integer"}));
    // A changed schema has another address.
    let change = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "A widget."}]);
    let path = format!("{CRDS}/widgets.example.io");
    assert_eq!(client.json_patch(&path, &change).await.code, 200);
    let index = paths(&client.get("/openapi/v3").await.json());
    assert_ne!(index["apis/example.io/v1"]["serverRelativeURL"], address.as_str());
}
