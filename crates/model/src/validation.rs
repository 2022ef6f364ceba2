//! Being written.

use crate::error::FieldError;
use crate::names::NameRule;
use serde_json::{Map, Value};

/// Being written.
pub fn validate_object_meta(_o: &Map<String, Value>, _n: bool, _r: NameRule) -> Vec<FieldError> {
    Vec::new()
}
/// Being written.
pub fn validate_object_meta_update(_n: &Map<String, Value>, _o: &Map<String, Value>) -> Vec<FieldError> {
    Vec::new()
}
