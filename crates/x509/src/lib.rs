//! PEM, DER and certificate signing requests, as pure functions.
//!
//! Validation, admission and the signer share these functions: two readers that disagree about which bytes of a text are the
//! certificate signing request let a request pass the checks of one and be signed by the other.

pub mod der;
pub mod pem;
mod request;

pub use request::{CertificateRequest, RequestError};
