//! Pod, and the template of pods that other kinds contain.

mod defaults;

use crate::error::FieldError;
use crate::kinds::Object;

pub(in crate::kinds) use defaults::default_template;

/// What is wrong with a template of pods in the field `path`.
pub(in crate::kinds) fn validate_template(_template: &Object, _path: &str) -> Vec<FieldError> {
    Vec::new()
}

/// What a client should be told about a template of pods in the field `path`, though it is valid.
pub(in crate::kinds) fn template_warnings(_template: &Object, _path: &str) -> Vec<String> {
    Vec::new()
}
