//! The group `certificates.k8s.io`.

mod pem;
mod signing_request;

use super::KindRules;

pub(super) use pem::bad_bundle;

pub(super) const RULES: &[KindRules] = &[signing_request::RULES];
