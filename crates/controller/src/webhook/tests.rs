//! Webhook handlers behind their HTTP interface, without TLS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::*;

/// A view of a ConfigMap with one field.
#[derive(Serialize, Deserialize)]
struct View {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

/// Sets a field, and patches another one.
struct Stamp;

impl Mutate for Stamp {
    type Object = View;

    async fn mutate(&self, request: &mut AdmissionRequest<View>) -> Verdict {
        let Some(object) = &mut request.object else { return Verdict::allow().warn("nothing to stamp") };
        object.data.insert("stamp".to_owned(), request.user_info.username.clone());
        let path = "/metadata/labels".to_owned();
        Verdict::allow().patch([PatchOperation::Add { path, value: json!({}) }]).audit("stamped", "yes")
    }
}

/// Denies by name.
struct Judge;

impl Validate for Judge {
    type Object = View;

    async fn validate(&self, request: &AdmissionRequest<View>) -> Verdict {
        match &*request.name {
            "bad" => Verdict::forbid("it is bad").warn("do not try again"),
            "slow" => std::future::pending().await,
            _ if request.operation == Operation::Delete => Verdict::deny(409, "it stays"),
            // A patch of a validating webhook is not sent.
            _ => Verdict::allow().patch([PatchOperation::Remove { path: "/data".to_owned() }]),
        }
    }
}

struct Rename;

impl Convert for Rename {
    async fn convert(&self, mut object: Value, api_version: &str) -> Result<Value, String> {
        match object["metadata"]["name"].as_str() {
            Some("bad") => return Err("it has no size".to_owned()),
            Some("thief") => object["metadata"]["uid"] = "other".into(),
            _ => object["convertedTo"] = api_version.into(),
        }
        Ok(object)
    }
}

fn hooks() -> Hooks {
    let server = WebhookServer::new()
        .mutating("/mutate", Stamp)
        .validating("/validate", Judge)
        .converting("/convert", Rename);
    Hooks(server.hooks)
}

async fn send(target: &str, body: impl Into<Bytes>) -> (u16, Value) {
    let request = Request::post(target).header(CONTENT_TYPE, "application/json; charset=utf-8");
    let answer = hooks().handle(request.body(body.into()).unwrap()).await;
    let text = String::from_utf8(answer.body().to_vec()).unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn admission(name: &str, operation: &str, object: Value) -> String {
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "kind": kind, "resource": resource, "requestKind": kind, "name": name, "namespace": "n",
            "operation": operation, "userInfo": {"username": "ann", "groups": ["g"]}, "object": object,
            "oldObject": null, "dryRun": false, "options": null,
        },
    })
    .to_string()
}

#[tokio::test]
async fn a_mutation_is_sent_as_a_patch_of_the_whole_object() {
    let object = json!({"metadata": {"name": "a"}, "binaryData": {"unknown": "to the view"}});
    let (code, review) = send("/mutate", admission("a", "CREATE", object)).await;
    let response = &review["response"];
    assert_eq!((code, &review["kind"], &response["uid"]), (200, &json!("AdmissionReview"), &json!("u1")));
    assert_eq!((&response["allowed"], &response["patchType"]), (&json!(true), &json!("JSONPatch")));
    let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&patch).unwrap(),
        json!([
            {"op": "add", "path": "/data", "value": {"stamp": "ann"}},
            {"op": "add", "path": "/metadata/labels", "value": {}},
        ])
    );
    assert_eq!(response["auditAnnotations"], json!({"stamped": "yes"}));
    let (_, deletion) = send("/mutate", admission("a", "DELETE", Value::Null)).await;
    let expected = json!({"uid": "u1", "allowed": true, "warnings": ["nothing to stamp"]});
    assert_eq!(deletion["response"], expected);
}

#[tokio::test]
async fn a_verdict_has_its_code_its_message_and_its_warnings() {
    let status = |code: u16, message: &str| json!({"status": "Failure", "code": code, "message": message});
    for (name, operation, expected) in [
        ("good", "CREATE", json!({"uid": "u1", "allowed": true})),
        (
            "bad",
            "CREATE",
            json!({
                "uid": "u1", "allowed": false, "status": status(403, "it is bad"), "warnings": ["do not try again"],
            }),
        ),
        ("good", "DELETE", json!({"uid": "u1", "allowed": false, "status": status(409, "it stays")})),
    ] {
        let (code, review) = send("/validate", admission(name, operation, json!({}))).await;
        assert_eq!((code, &review["response"]), (200, &expected), "{name} {operation}");
    }
    let (_, review) = send("/validate", admission("good", "CREATE", json!({"data": 1}))).await;
    assert_eq!(review["response"]["status"]["code"], 400, "{review}");
}

#[tokio::test]
async fn requests_that_are_no_reviews_are_refused() {
    let other_version =
        admission("a", "CREATE", json!({})).replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    for (target, body, code) in [
        ("/validate", "", 400),
        ("/validate", "[]", 400),
        ("/validate", r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, 400),
        ("/validate", &*other_version, 400),
        ("/convert", &*admission("a", "CREATE", json!({})), 400),
        ("/else", "{}", 404),
    ] {
        assert_eq!(send(target, body.to_owned()).await.0, code, "{target} {body}");
    }
    let plain = Request::post("/validate").header(CONTENT_TYPE, "text/plain").body(Bytes::new()).unwrap();
    assert_eq!(hooks().handle(plain).await.status(), 415);
    let get = Request::get("/validate").body(Bytes::new()).unwrap();
    assert_eq!(hooks().handle(get).await.status(), 405);
    let limits = ["/validate", "/convert", "/else"].map(|path| hooks().body_bytes_max(path));
    assert_eq!(limits, [REVIEW_BYTES_MAX, CONVERSION_BYTES_MAX, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_the_time_that_the_api_server_waits() {
    for (query, seconds) in [("?timeout=3s", 3), ("", 10), ("?timeout=x", 10)] {
        let begun = tokio::time::Instant::now();
        let (code, _) = send(&format!("/validate{query}"), admission("slow", "CREATE", json!({}))).await;
        assert_eq!((code, begun.elapsed().as_secs()), (504, seconds), "{query}");
    }
}

fn conversion(names: &[&str]) -> String {
    let object = |name: &&str| json!({"apiVersion": "e.com/v1", "kind": "Ship", "metadata": {"name": name, "uid": "1"}});
    let objects: Vec<Value> = names.iter().map(object).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "c1", "desiredAPIVersion": "e.com/v2", "objects": objects},
    })
    .to_string()
}

#[tokio::test]
async fn a_conversion_converts_all_objects_or_none() {
    let (code, review) = send("/convert", conversion(&["a", "b"])).await;
    let response = &review["response"];
    assert_eq!(
        (code, &response["uid"], &response["result"]["status"]),
        (200, &json!("c1"), &json!("Success"))
    );
    let converted = response["convertedObjects"].as_array().unwrap();
    let names: Vec<_> = converted.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(
        converted
            .iter()
            .all(|object| object["apiVersion"] == "e.com/v2" && object["convertedTo"] == "e.com/v2")
    );
    for (names, message) in [
        (["a", "bad"], "bad: it has no size"),
        (["a", "thief"], "thief: the conversion changed the kind or the metadata of the object"),
    ] {
        let (_, review) = send("/convert", conversion(&names)).await;
        let expected = json!({"uid": "c1", "result": {"status": "Failure", "message": message}});
        assert_eq!(review["response"], expected);
    }
    let same = conversion(&["a"]).replace("e.com/v2", "e.com/v1");
    let (_, review) = send("/convert", same).await;
    assert_eq!(
        review["response"]["convertedObjects"][0].get("convertedTo"),
        None,
        "it is of that version already"
    );
}
