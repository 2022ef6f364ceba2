//! Certificates: `CertificateApproval`, `CertificateSigning`, `ClusterTrustBundleAttest` and `CertificateSubjectRestriction`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::error::{Error, quote};
use model::object::{present, text};
use x509::{CertificateRequest, RequestError};

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::auth::AuthorizerAttributes;
use crate::registry::Object;
use crate::request::path::ResourcePath;

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

/// Whether the caller has the verb on a signer, or on all signers of its domain.
fn may(request: &AdmissionAttributes<'_>, verb: &str, signer: &str) -> bool {
    let asks = |name: String| {
        let path = ResourcePath {
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..ResourcePath::default()
        };
        let attributes = AuthorizerAttributes::Resource { verb, path: &path };
        request.call.api.authorizer.decide(&request.call.caller, attributes).is_allowed()
    };
    let domain = signer.split('/').next().unwrap_or(signer);
    asks(signer.to_owned()) || asks(format!("{domain}/*"))
}

fn permitted(
    request: &AdmissionAttributes<'_>,
    object: Option<&Object>,
    verb: &str,
    signer: &str,
) -> Result<(), Error> {
    if may(request, verb, signer) {
        return Ok(());
    }
    let message = match verb {
        "attest" => format!("user not permitted to attest for signerName {}", quote(signer)),
        _ => {
            format!("user not permitted to {verb} requests with signerName {}", quote(signer))
        }
    };
    Err(request.forbidden(object, message))
}

/// Approval of a CertificateSigningRequest needs the verb `approve` on its signer.
pub(super) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(target.is(GROUP, REQUESTS, "approval") && target.operation == Operation::Update)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let signer = request.old.map_or("", |old| text(old, &["spec", "signerName"]));
        PluginResult::Done(permitted(request, object, "approve", signer))
    }
}

/// Signing a CertificateSigningRequest needs the verb `sign` on its signer.
pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(target.is(GROUP, REQUESTS, "status") && target.operation == Operation::Update)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let (Some(new), Some(old)) = (object, request.old) else { return PluginResult::OK };
        let same = |key: &str| present(new, &["status", key]) == present(old, &["status", key]);
        if same("certificate") && same("conditions") {
            return PluginResult::OK;
        }
        PluginResult::Done(permitted(request, object, "sign", text(old, &["spec", "signerName"])))
    }
}

/// Writing the ClusterTrustBundle of a signer needs the verb `attest` on it.
pub(super) struct ClusterTrustBundleAttest;

impl Plugin for ClusterTrustBundleAttest {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let is_bundle = target.is(GROUP, "clustertrustbundles", "");
        Phases::validating(is_bundle && target.operation != Operation::Delete)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let signer = object.map_or("", |bundle| text(bundle, &["spec", "signerName"]));
        let is_same =
            request.old.is_some_and(|old| old.get("spec") == object.and_then(|new| new.get("spec")));
        if signer.is_empty() || is_same {
            return PluginResult::OK;
        }
        PluginResult::Done(permitted(request, object, "attest", signer))
    }
}

/// The PKCS#10 request in a CertificateSigningRequest, by the parser that validation and the signer use.
pub(super) fn parsed(csr: &Object) -> Result<CertificateRequest, RequestError> {
    let text = STANDARD.decode(text(csr, &["spec", "request"])).map_err(|_| RequestError::NotPem)?;
    CertificateRequest::from_pem(&text)
}

/// Refuses requests for `system:masters` at the client signer. A request that cannot be parsed is refused.
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(target.is(GROUP, REQUESTS, "") && target.operation == Operation::Create)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(csr) = object else { return PluginResult::OK };
        if text(csr, &["spec", "signerName"]) != CLIENT_SIGNER {
            return PluginResult::OK;
        }
        let message = match parsed(csr) {
            Err(reason) => format!("unable to parse csr: {reason}"),
            Ok(asked) if asked.organizations().iter().any(|group| group == MASTERS) => {
                format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed")
            }
            Ok(_) => return PluginResult::OK,
        };
        PluginResult::Done(Err(request.forbidden(object, message)))
    }
}
