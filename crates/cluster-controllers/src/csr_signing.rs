//! The certificatesigningrequest-signing controller: signs approved requests for client certificates. Kubelet
//! certificates are left to other signers: there are no nodes.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controller::{
    Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use process::pki::{KeyUsage, Signer};
use serde::Deserialize;
use serde_json::{Value, json};
use x509::CertificateRequest;

use crate::Setup;
use crate::kinds::SIGNING_REQUESTS;
use crate::views::or_default;

const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
/// The longest and the shortest lifetime of a certificate.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const SHORTEST: Duration = Duration::from_secs(10 * 60);

/// The fields of a CertificateSigningRequest that this controller reads.
#[derive(Debug, Deserialize)]
struct SigningRequest {
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    /// PEM in base64.
    #[serde(default)]
    request: String,
    signer_name: String,
    #[serde(default, deserialize_with = "or_default")]
    usages: Vec<String>,
    expiration_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<Value>,
    #[serde(default)]
    certificate: String,
}

/// The decision about a request.
#[derive(Debug, PartialEq)]
enum SigningStep {
    Nothing,
    /// Sign it with these usages and this lifetime.
    Sign(Vec<KeyUsage>, Duration),
    /// Set the condition `Failed` with this message.
    Refuse(String),
}

fn decide(request: &SigningRequest) -> SigningStep {
    let SigningRequest { spec, status, .. } = request;
    let has = |kind: &str| status.conditions.iter().any(|condition| condition["type"] == kind);
    let is_due = has("Approved") && !has("Denied") && !has("Failed") && status.certificate.is_empty();
    if spec.signer_name != CLIENTS || !is_due {
        return SigningStep::Nothing;
    }
    let (mut usages, mut is_client) = (Vec::new(), false);
    for usage in &spec.usages {
        match usage.as_str() {
            "client auth" => is_client = true,
            "digital signature" => usages.push(KeyUsage::DigitalSignature),
            "key encipherment" => usages.push(KeyUsage::KeyEncipherment),
            other => return SigningStep::Refuse(format!("invalid usage for client certificate: {other}")),
        }
    }
    if !is_client {
        return SigningStep::Refuse("missing required usage for client certificate: client auth".to_owned());
    }
    let asked = spec.expiration_seconds.map_or(LIFETIME, Duration::from_secs);
    SigningStep::Sign(usages, asked.clamp(SHORTEST, LIFETIME))
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let signing = CsrSigner { client: client.clone(), signer: setup.settings.signer.clone() };
    Controller::new("certificatesigningrequest-signing-controller", signing).watch::<SigningRequest, _>(
        &setup.informers,
        ListWatch::all(SIGNING_REQUESTS),
        |delta| (!delta.is_deleted).then(|| delta.key.clone()),
    )
}

struct CsrSigner {
    client: Client,
    signer: Option<Signer>,
}

impl CsrSigner {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &SIGNING_REQUESTS.resource(), None)
    }
}

/// A request as JSON and parsed.
struct Observed {
    object: Value,
    request: SigningRequest,
}

impl Reconciler for CsrSigner {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = SigningStep;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        if self.signer.is_none() {
            return Ok(None);
        }
        let Some(object) = self.objects().get::<Value>(&key.name).await? else { return Ok(None) };
        let Ok(request) = SigningRequest::deserialize(&object) else { return Ok(None) };
        Ok(Some(Observed { object, request }))
    }

    fn decide(observed: &Observed, _: Timestamp) -> SigningStep {
        decide(&observed.request)
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        Observed { mut object, request }: Observed,
        step: SigningStep,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        let Some(signer) = &self.signer else { return Ok(Outcome::Done) };
        let refuse = |object: &mut Value, why: &str| {
            object["status"]["conditions"] = refused(&request, why, Timestamp::now());
        };
        match step {
            SigningStep::Nothing => return Ok(Outcome::Done),
            SigningStep::Refuse(why) => refuse(&mut object, &why),
            SigningStep::Sign(usages, lifetime) => match signed(signer, &request, &usages, lifetime) {
                Ok(certificate) => object["status"]["certificate"] = certificate.into(),
                Err(why) => refuse(&mut object, &why),
            },
        }
        // The RBAC role of this controller allows only an update of the whole status, with the resource version that
        // was read.
        self.objects().replace_subresource::<Value>("status", &key.name, &object).await?;
        Ok(Outcome::Done)
    }
}

/// The certificate in base64, for the status.
fn signed(
    signer: &Signer,
    request: &SigningRequest,
    usages: &[KeyUsage],
    lifetime: Duration,
) -> std::result::Result<String, String> {
    let text = STANDARD.decode(&request.spec.request).map_err(|error| error.to_string())?;
    let parsed = CertificateRequest::from_pem(&text).map_err(|error| error.to_string())?;
    Ok(STANDARD.encode(signer.client(&parsed, usages, SystemTime::now(), lifetime)?))
}

/// The conditions of a request that cannot be signed.
fn refused(request: &SigningRequest, why: &str, now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let failed = json!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
        "lastUpdateTime": now, "lastTransitionTime": now,
    });
    request.status.conditions.iter().cloned().chain([failed]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(spec: Value, status: Value) -> SigningStep {
        let mut request =
            json!({"metadata": {"name": "r"}, "spec": {"signerName": CLIENTS}, "status": status});
        for (key, value) in spec.as_object().unwrap() {
            request["spec"][key] = value.clone();
        }
        decide(&serde_json::from_value(request).unwrap())
    }

    #[test]
    fn only_approved_client_requests_are_signed_for_at_most_a_year() {
        let approved = json!({"conditions": [{"type": "Approved"}]});
        let client = json!({"usages": ["client auth", "digital signature"]});
        let signature = vec![KeyUsage::DigitalSignature];
        let asks = |seconds: u64| json!({"usages": ["client auth"], "expirationSeconds": seconds});
        for (spec, status, expected) in [
            (client.clone(), approved.clone(), SigningStep::Sign(signature, LIFETIME)),
            (client.clone(), json!({}), SigningStep::Nothing),
            (
                client.clone(),
                json!({"conditions": [{"type": "Approved"}, {"type": "Failed"}]}),
                SigningStep::Nothing,
            ),
            (
                client.clone(),
                json!({"conditions": [{"type": "Approved"}], "certificate": "eA=="}),
                SigningStep::Nothing,
            ),
            (
                json!({"signerName": "example.com/mine", "usages": ["client auth"]}),
                approved.clone(),
                SigningStep::Nothing,
            ),
            (asks(3600), approved.clone(), SigningStep::Sign(vec![], Duration::from_secs(3600))),
            (asks(1), approved.clone(), SigningStep::Sign(vec![], SHORTEST)),
            (asks(1 << 40), approved.clone(), SigningStep::Sign(vec![], LIFETIME)),
            (
                json!({"usages": ["server auth"]}),
                approved.clone(),
                SigningStep::Refuse("invalid usage for client certificate: server auth".to_owned()),
            ),
            (
                json!({"usages": ["digital signature"]}),
                approved,
                SigningStep::Refuse("missing required usage for client certificate: client auth".to_owned()),
            ),
        ] {
            assert_eq!(decided(spec.clone(), status), expected, "{spec}");
        }
    }
}
