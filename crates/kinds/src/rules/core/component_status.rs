//! ComponentStatus.

use model::Object;
use model::object::{items, text_in};
use serde_json::Value;

use crate::rules::KindRules;
use crate::rules::columns::{Column, NAME, name};

pub(super) const RULES: KindRules = KindRules {
    kind: "ComponentStatus",
    deprecated: Some("v1 ComponentStatus is deprecated in v1.19+"),
    columns: &[
        NAME,
        Column::new("Status", "string", "The health of the component."),
        Column::new("Message", "string", "The message of the component."),
        Column::new("Error", "string", "The error of the health check."),
    ],
    cells: |object, _| {
        let [status, message, error] = shown(object);
        vec![name(object), status, message, error]
    },
    ..KindRules::PLAIN
};

fn shown(object: &Object) -> [Value; 3] {
    let healthy = items(object, &["conditions"]).iter().find(|of| text_in(of, "type") == "Healthy");
    let said = |key| healthy.map_or("", |condition| text_in(condition, key)).into();
    let status = match healthy.map(|condition| text_in(condition, "status")) {
        Some("True") => "Healthy",
        Some("False") => "Unhealthy",
        _ => "Unknown",
    };
    [status.into(), said("message"), said("error")]
}
