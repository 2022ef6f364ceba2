//! The group `flowcontrol.apiserver.k8s.io`.

mod bootstrap;
mod flow_schema;
mod priority_level;

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{maps, text};

use super::{KindRules, Subresource};
use crate::rules::common::{keep_all_but_status, keep_metadata};

pub use bootstrap::{flow_schemas, priority_levels};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

pub(super) const RULES: &[KindRules] = &[flow_schema::RULES, priority_level::RULES];

/// The status subresource: conditions of unique types.
const STATUS: Subresource = Subresource {
    name: "status",
    prepare_update: |new, old| {
        keep_all_but_status(new, old);
        keep_metadata(new, old);
    },
    validate_update: |new, _| bad_status(new),
};

fn bad_status(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, condition) in maps(object, &["status", "conditions"]) {
        let path = Path::STATUS.item("conditions", index);
        let path = path.field("type");
        let kind = text(condition, &["type"]);
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(path, kind));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
    }
    errors
}
