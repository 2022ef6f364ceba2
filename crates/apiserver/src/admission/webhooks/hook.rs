//! A webhook of a configuration, compiled.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kinds::admission::kubeconfig::{User, Users};
use kinds::policies::{Conditions, Criteria};
use model::object;
use process::pki::Identity;
use serde_json::{Map, Value};

use crate::registry::Object;
use crate::webhook::{Services, Webhook, WebhookAddress, WebhookCredentials};

/// The default of `timeoutSeconds`.
const DEFAULT_SECONDS: u64 = 10;

/// One webhook of a configuration.
pub(super) struct Hook {
    /// Unique among all webhooks.
    pub id: String,
    /// The name of its configuration.
    pub configuration: String,
    pub name: String,
    pub criteria: Criteria,
    pub conditions: Conditions,
    /// `failurePolicy: Ignore`.
    pub is_optional: bool,
    /// Whether it has side effects in a dry run, too.
    pub has_side_effects: bool,
    /// `reinvocationPolicy: IfNeeded`.
    pub is_reinvoked: bool,
    /// The version of AdmissionReview to send; `None` if no listed version is known.
    pub review: Option<&'static str>,
    pub webhook: Result<Webhook, String>,
}

/// The webhooks of a configuration, in its order.
pub(super) fn read(
    configuration: &str,
    object: &Object,
    services: &Services,
    users: &Users,
) -> Vec<Arc<Hook>> {
    let hooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    let hooks = hooks.filter_map(Value::as_object).enumerate();
    hooks.map(|(index, hook)| Arc::new(Hook::read(configuration, index, hook, services, users))).collect()
}

impl Hook {
    fn read(configuration: &str, index: usize, hook: &Object, services: &Services, users: &Users) -> Self {
        let text = |key: &str| object::text(hook, &[key]);
        let config = hook.get("clientConfig").unwrap_or(&Value::Null);
        let bundle = config.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        let bundle = STANDARD.decode(bundle).unwrap_or_default();
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_SECONDS);
        let timeout = Duration::from_secs(seconds);
        let versions = hook.get("admissionReviewVersions").and_then(Value::as_array).into_iter().flatten();
        let known = |version: &str| ["v1", "v1beta1"].into_iter().find(|known| *known == version);
        let review = versions.filter_map(Value::as_str).find_map(known);
        Self {
            id: format!("{configuration}/{index}"),
            configuration: configuration.to_owned(),
            name: text("name").to_owned(),
            criteria: criteria(hook),
            conditions: Conditions::of_webhook(hook),
            is_optional: text("failurePolicy") == "Ignore",
            has_side_effects: !["None", "NoneOnDryRun"].contains(&text("sideEffects")),
            is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
            review,
            webhook: WebhookAddress::read(config).and_then(|address| {
                let credentials = credentials(users.of(&address.host, address.port))?;
                Ok(Webhook::new(address, &bundle, timeout, services, credentials))
            }),
        }
    }
}

/// The operator's credentials as headers and certificates.
fn credentials(user: Option<&User>) -> Result<WebhookCredentials, String> {
    let Some(user) = user else { return Ok(WebhookCredentials::default()) };
    let value = match &user.basic {
        Some((name, password)) => Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))),
        None => (!user.token.is_empty()).then(|| format!("Bearer {}", user.token)),
    };
    let header = |value: String| HeaderValue::try_from(value);
    let authorization = value.map(header).transpose();
    let mut authorization =
        authorization.map_err(|_| "the configured credentials cannot be sent in a header".to_owned())?;
    authorization.iter_mut().for_each(|value| value.set_sensitive(true));
    let identity = user.certificate.clone();
    let identity = identity.map(|(certificate, key)| Identity { certificate, key });
    Ok(WebhookCredentials { identity, authorization })
}

/// The match criteria, in the form of policies.
fn criteria(hook: &Object) -> Criteria {
    let mut resources = Map::new();
    for (key, word) in [
        ("rules", "resourceRules"),
        ("matchPolicy", "matchPolicy"),
        ("namespaceSelector", "namespaceSelector"),
        ("objectSelector", "objectSelector"),
    ] {
        resources.extend(hook.get(key).map(|value| (word.to_owned(), value.clone())));
    }
    // Without rules a policy matches everything, a webhook nothing.
    let is_empty = hook.get("rules").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if is_empty {
        resources.insert("resourceRules".to_owned(), Value::Array(vec![Value::Object(Map::new())]));
    }
    Criteria::read(&resources)
}
