//! Conversion between versions of a custom object: none, or by webhook.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use model::error::{Error, quote};
use model::object::text;
use model::object::text_in;
use serde_json::{Value, json};

use crate::registry::Object;
use crate::webhook::{Services, Webhook, WebhookAddress, WebhookCredentials};

/// The timeout of a conversion webhook.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The conversion strategy of a CRD.
pub(crate) enum Conversion {
    /// All versions have the same fields.
    None,
    /// A webhook converts.
    Webhook(Box<Converter>),
}

impl Conversion {
    /// Parses `spec.conversion`.
    pub fn read(conversion: &Value, services: &Services) -> Self {
        if conversion.get("strategy").and_then(Value::as_str) != Some("Webhook") {
            return Self::None;
        }
        let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
        let config = webhook.get("clientConfig").unwrap_or(&Value::Null);
        let bundle = config.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        let bundle = STANDARD.decode(bundle).unwrap_or_default();
        let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let version = versions.into_iter().flatten().filter_map(Value::as_str);
        let review =
            version.filter_map(|version| ["v1", "v1beta1"].into_iter().find(|known| *known == version));
        Self::Webhook(Box::new(Converter {
            webhook: WebhookAddress::read(config).map(|target| {
                Webhook::new(target, &bundle, TIMEOUT, services, WebhookCredentials::default())
            }),
            review: review.into_iter().next(),
        }))
    }
}

/// A conversion webhook.
pub(crate) struct Converter {
    webhook: Result<Webhook, String>,
    /// The version of ConversionReview to send; `None` if no listed version is known.
    review: Option<&'static str>,
}

impl Converter {
    /// Converts objects with kind and apiVersion, all in one request.
    pub async fn convert(&self, kind: &str, objects: Vec<Object>, to: &str) -> Result<Vec<Object>, Error> {
        let Some(first) = objects.first() else { return Ok(objects) };
        let of = format!("{}, Kind={kind}", text(first, &["apiVersion"]));
        let failed =
            |problem: String| Error::Failed { message: format!("conversion webhook for {of} {problem}") };
        let review = self
            .review
            .ok_or_else(|| Error::Failed { message: "no supported conversion review versions".to_owned() })?;
        let uid = uuid::Uuid::new_v4().to_string();
        let document = json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{review}"),
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        let webhook = self.webhook.as_ref().map_err(|problem| failed(format!("failed: {problem}")))?;
        let answer = webhook.post(Bytes::from(document.to_string()), None).await;
        let answer = answer.map_err(|problem| failed(format!("failed: {problem}")))?;
        let converted =
            converted(&answer, review, &uid).map_err(|problem| failed(format!("failed: {problem}")))?;
        if converted.len() != objects.len() {
            let (is, expected) = (converted.len(), objects.len());
            return Err(failed(format!("returned {is} objects, expected {expected}")));
        }
        let pairs = objects.iter().zip(converted).enumerate();
        pairs
            .map(|(index, (original, converted))| {
                checked(original, converted, to)
                    .map_err(|problem| failed(format!("returned invalid object at index {index}: {problem}")))
            })
            .collect()
    }
}

/// The converted objects of a ConversionReview response.
fn converted(answer: &[u8], review: &str, uid: &str) -> Result<Vec<Value>, String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let field = |value: &Value, key: &str| text_in(value, key).to_owned();
    let (kind, version) = (field(&answer, "kind"), field(&answer, "apiVersion"));
    if review == "v1" && (kind != "ConversionReview" || version != "apiextensions.k8s.io/v1") {
        return Err(format!(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {version}, Kind={kind}"
        ));
    }
    let Some(response) = answer.get("response").filter(|response| response.is_object()) else {
        return Err("no response provided".to_owned());
    };
    let given = field(response, "uid");
    if review == "v1" && given != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(&given)));
    }
    let result = response.get("result").unwrap_or(&Value::Null);
    match (field(result, "status").as_str(), field(result, "message")) {
        ("Success", _) => {}
        (status, message) if message.is_empty() => {
            return Err(format!("response.result.status was '{status}', not 'Success'"));
        }
        (_, message) => return Err(message),
    }
    let objects = response.get("convertedObjects").and_then(Value::as_array);
    Ok(objects.cloned().unwrap_or_default())
}

/// Restores the metadata of the original; a webhook may change only labels and annotations.
fn checked(original: &Object, converted: Value, to: &str) -> Result<Object, String> {
    let Value::Object(mut converted) = converted else { return Err("it is no object".to_owned()) };
    let version = text(&converted, &["apiVersion"]);
    if version != to {
        return Err(format!("invalid groupVersion (expected {to}, received {version})"));
    }
    let (expected, kind) = (text(original, &["kind"]), text(&converted, &["kind"]));
    if kind != expected {
        return Err(format!("invalid kind (expected {expected}, received {kind})"));
    }
    let Some(Value::Object(mut returned)) = converted.remove("metadata") else {
        return Err("missing metadata in converted object".to_owned());
    };
    let mut metadata = original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, what) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, given) = (text(&metadata, &[key]), text(&returned, &[key]));
        if expected != given {
            return Err(format!("must have the same {what}: {expected} != {given}"));
        }
    }
    for key in ["labels", "annotations"] {
        match returned.remove(key) {
            None | Some(Value::Null) => {
                metadata.remove(key);
            }
            Some(Value::Object(texts)) => {
                if let Some((name, _)) = texts.iter().find(|(_, value)| !value.is_string()) {
                    return Err(format!("metadata.{key}[{name}] must be a string in converted object"));
                }
                metadata.insert(key.to_owned(), texts.into());
            }
            Some(_) => return Err(format!("invalid metadata.{key} in converted object")),
        }
    }
    converted.insert("metadata".to_owned(), metadata.into());
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(change: impl FnOnce(&mut Value)) -> Result<Vec<Value>, String> {
        let mut answer = json!({
            "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "response": {"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{}]},
        });
        change(&mut answer);
        converted(answer.to_string().as_bytes(), "v1", "u")
    }

    #[test]
    fn invalid_conversion_reviews_are_refused() {
        assert_eq!(answer(|_| {}), Ok(vec![json!({})]));
        let refused = |change: fn(&mut Value)| answer(change).unwrap_err();
        assert_eq!(refused(|a| a["response"] = Value::Null), "no response provided");
        assert_eq!(refused(|a| a["response"]["uid"] = "x".into()), "expected response.uid=\"u\", got \"x\"");
        assert_eq!(
            refused(|a| a["response"]["result"]["status"] = "Failure".into()),
            "response.result.status was 'Failure', not 'Success'"
        );
        assert_eq!(
            refused(|a| a["response"]["result"] = json!({"status": "Failure", "message": "no"})),
            "no"
        );
        assert_eq!(
            refused(|a| a["apiVersion"] = "x/v1".into()),
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got x/v1, Kind=ConversionReview"
        );
    }

    #[test]
    fn a_webhook_changes_no_metadata_but_labels_and_annotations() {
        let original = json!({"kind": "K", "apiVersion": "g/v1", "metadata": {"name": "n", "generation": 3}});
        let original = original.as_object().unwrap();
        let with = |metadata: Value| json!({"kind": "K", "apiVersion": "g/v2", "metadata": metadata, "x": 1});
        let converted =
            checked(original, with(json!({"name": "n", "generation": 9, "labels": {"a": "b"}})), "g/v2");
        let metadata = json!({"name": "n", "generation": 3, "labels": {"a": "b"}});
        assert_eq!(Value::from(converted.unwrap()), with(metadata));
        let refused = |value: Value| checked(original, value, "g/v2").unwrap_err();
        assert_eq!(refused(with(json!({"name": "m"}))), "must have the same name: n != m");
        assert_eq!(refused(with(Value::Null)), "missing metadata in converted object");
        assert_eq!(
            refused(json!({"kind": "K", "apiVersion": "g/v1"})),
            "invalid groupVersion (expected g/v2, received g/v1)"
        );
        assert_eq!(
            refused(json!({"kind": "L", "apiVersion": "g/v2"})),
            "invalid kind (expected K, received L)"
        );
    }
}
