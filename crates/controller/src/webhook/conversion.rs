//! Conversion: custom objects from one version of their kind to another (ConversionReview v1).

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

/// A handler of a CRD's conversion webhook.
pub trait Convert: Send + Sync + 'static {
    /// Converts an object to the version `api_version`, such as `example.com/v1`. The server sets `apiVersion` afterwards, and refuses a
    /// conversion that changes the metadata other than labels and annotations.
    ///
    /// # Errors
    /// The reason why the object cannot be converted, for the user.
    fn convert(&self, object: Value, api_version: &str)
    -> impl Future<Output = Result<Value, String>> + Send;
}

/// The request of a ConversionReview.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversionRequest {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    objects: Vec<Value>,
}

/// A handler of any type: from a request to the response of its ConversionReview.
pub(super) type ConvertAll = Box<dyn Fn(ConversionRequest) -> BoxFuture<'static, Value> + Send + Sync>;

pub(super) fn converting<C: Convert>(handler: C) -> ConvertAll {
    let handler = std::sync::Arc::new(handler);
    Box::new(move |request| {
        let handler = std::sync::Arc::clone(&handler);
        async move {
            let uid = request.uid.clone();
            match convert_all(&*handler, request).await {
                Ok(converted) => {
                    json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": converted})
                }
                // The API server takes all of them or none.
                Err(message) => json!({"uid": uid, "result": {"status": "Failure", "message": message}}),
            }
        }
        .boxed()
    })
}

async fn convert_all<C: Convert>(handler: &C, request: ConversionRequest) -> Result<Vec<Value>, String> {
    let ConversionRequest { desired_api_version, objects, .. } = request;
    let mut converted = Vec::with_capacity(objects.len());
    for object in objects {
        if object["apiVersion"] == *desired_api_version {
            converted.push(object);
            continue;
        }
        let identity = identity(&object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut new = handler
            .convert(object, &desired_api_version)
            .await
            .map_err(|error| format!("{name}: {error}"))?;
        if !new.is_object() || self::identity(&new) != identity {
            return Err(format!("{name}: the conversion changed the kind or the metadata of the object"));
        }
        new["apiVersion"] = desired_api_version.as_str().into();
        converted.push(new);
    }
    Ok(converted)
}

/// The parts of an object that no conversion may change.
fn identity(object: &Value) -> [Value; 4] {
    let of = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    [of("/kind"), of("/metadata/name"), of("/metadata/namespace"), of("/metadata/uid")]
}
