//! Fields that a write cannot change, and that its manager therefore does not own.

use super::element::Element;
use super::set::FieldSet;

/// A path of names.
type Path = &'static [&'static str];

/// The fields that a write of an object or of a subresource resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// None.
    Nothing,
    /// These fields and everything below them.
    Fields(&'static [Path]),
}

const STATUS: Reset = Reset::Fields(&[&["status"]]);
const SPEC: Reset = Reset::Fields(&[&["spec"]]);
const METADATA_AND_SPEC: Reset = Reset::Fields(&[&["metadata"], &["spec"]]);

/// Kinds with a status subresource that does not write metadata.
const STATUS_ALONE: [&str; 8] = [
    "APIService",
    "CustomResourceDefinition",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "ResourceClaim",
    "DeviceTaintRule",
    "ValidatingAdmissionPolicy",
    "VolumeAttachment",
];

impl Reset {
    /// The reset fields of a built-in kind; `subresource` is empty for the object itself.
    pub fn of_kind(group: &str, kind: &str, has_status: bool, subresource: &str) -> Self {
        match (group, kind, subresource) {
            ("networking.k8s.io", "ServiceCIDR", _) => Self::Nothing,
            ("certificates.k8s.io", "CertificateSigningRequest", "") => {
                Self::Fields(&[&["spec"], &["status"]])
            }
            ("certificates.k8s.io", "CertificateSigningRequest", "status") => {
                Self::Fields(&[&["spec"], &["status", "conditions"]])
            }
            ("certificates.k8s.io", "CertificateSigningRequest", "approval") => {
                Self::Fields(&[&["spec"], &["status", "certificate"]])
            }
            ("apps", "Deployment", "status") => Self::Fields(&[&["metadata", "labels"], &["spec"]]),
            ("", "Pod", "status") => Self::Fields(&[
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
                &["spec"],
            ]),
            ("", "Namespace", "finalize") => STATUS,
            (_, kind, "status") if STATUS_ALONE.contains(&kind) => METADATA_AND_SPEC,
            (_, _, subresource) => Self::of_custom(has_status, subresource),
        }
    }

    /// The reset fields of a custom resource.
    pub fn of_custom(has_status: bool, subresource: &str) -> Self {
        match subresource {
            "" if has_status => STATUS,
            "status" => SPEC,
            _ => Self::Nothing,
        }
    }

    /// The set without the reset fields.
    pub(super) fn filter<'a>(self, set: FieldSet<'a>) -> FieldSet<'a> {
        match self {
            Self::Nothing => set,
            Self::Fields(paths) => paths.iter().fold(set, |set, path| without(set, path)),
        }
    }
}

fn without<'a>(mut set: FieldSet<'a>, path: &[&str]) -> FieldSet<'a> {
    let Some((first, rest)) = path.split_first() else { return FieldSet::new() };
    set.retain(|entry| {
        if !matches!(&entry.element, Element::Field(name) if name == first) {
            return true;
        }
        if rest.is_empty() {
            return false;
        }
        entry.children = without(std::mem::take(&mut entry.children), rest);
        true
    });
    set
}
