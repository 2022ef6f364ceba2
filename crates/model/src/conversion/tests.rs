//! There and back again.

use serde_json::json;

use super::conversion;

#[test]
fn an_event_has_other_names_in_its_own_group() {
    let event = conversion("events.k8s.io", "v1", "Event").unwrap();
    let own = json!({
        "metadata": {"name": "a"}, "regarding": {"kind": "Pod"}, "note": "text", "reportingController": "c",
        "deprecatedCount": 3, "action": "Binding",
    });
    let stored = json!({
        "metadata": {"name": "a"}, "involvedObject": {"kind": "Pod"}, "message": "text", "reportingComponent": "c",
        "count": 3, "action": "Binding",
    });
    let mut object = own.as_object().unwrap().clone();
    (event.to_stored)(&mut object);
    assert_eq!(json!(object), stored);
    (event.from_stored)(&mut object);
    assert_eq!(json!(object), own);
    assert_eq!(event.stored_field("regarding.name"), Ok("involvedObject.name"));
    assert!(event.stored_field("involvedObject.name").is_err());
}
