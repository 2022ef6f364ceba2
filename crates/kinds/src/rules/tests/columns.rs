//! Tables of kube-apiserver: columns and cells.

use serde_json::json;

use super::*;

/// Name, type, format and priority of each column.
pub fn headings(kind_name: &str) -> Vec<(&'static str, &'static str, &'static str, i32)> {
    let columns = kind(kind_name).columns();
    columns.iter().map(|column| (column.name, column.kind, column.format, column.priority)).collect()
}

pub const NAME: (&str, &str, &str, i32) = ("Name", "string", "name", 0);

pub const fn text(name: &str) -> (&str, &str, &str, i32) {
    (name, "string", "", 0)
}

pub const fn wide(name: &str) -> (&str, &str, &str, i32) {
    (name, "string", "", 1)
}

#[test]
fn columns_are_those_of_kube_apiserver() {
    assert_eq!(headings("Namespace"), [NAME, text("Status"), text("Age")]);
    assert_eq!(headings("ConfigMap"), [NAME, text("Data"), text("Age")]);
    assert_eq!(headings("Secret"), [NAME, text("Type"), text("Data"), text("Age")]);
    assert_eq!(headings("ServiceAccount"), [NAME, text("Age")]);
    assert_eq!(headings("Lease"), [NAME, text("Holder"), text("Age")]);
    assert_eq!(
        headings("PriorityClass"),
        [
            NAME,
            ("Value", "integer", "", 0),
            ("Global-Default", "boolean", "", 0),
            text("Age"),
            text("PreemptionPolicy"),
        ]
    );
    assert_eq!(
        headings("StorageClass"),
        [
            NAME,
            text("Provisioner"),
            text("ReclaimPolicy"),
            text("VolumeBindingMode"),
            text("AllowVolumeExpansion"),
            text("Age"),
        ]
    );
    assert_eq!(
        headings("Event"),
        [
            text("Last Seen"),
            text("Type"),
            text("Reason"),
            text("Object"),
            wide("Subobject"),
            wide("Source"),
            text("Message"),
            wide("First Seen"),
            wide("Count"),
            ("Name", "string", "name", 1),
        ]
    );
}

/// Checks the cells of objects that were created 5 minutes and 21 seconds ago.
pub fn rows(cases: Vec<(&str, Value, Value)>) {
    let now = "2026-11-16T00:20:08.5Z".parse().unwrap();
    for (kind, object, expected) in cases {
        let cells = super::kind(kind).cells(object.as_object().unwrap(), now);
        assert_eq!(Value::Array(cells), expected, "{kind}");
    }
}

fn metadata() -> Value {
    json!({"name": "wire", "creationTimestamp": "2026-11-16T00:14:47Z"})
}

#[test]
fn cells_are_those_of_kube_apiserver() {
    let metadata = metadata();
    let mut default = metadata.clone();
    default["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    rows(vec![
        (
            "Namespace",
            json!({"metadata": metadata, "status": {"phase": "Active"}}),
            json!(["wire", "Active", "5m21s"]),
        ),
        (
            "ConfigMap",
            json!({"metadata": metadata, "data": {"a": "", "b": ""}, "binaryData": {"c": ""}}),
            json!(["wire", 3, "5m21s"]),
        ),
        (
            "Secret",
            json!({"metadata": metadata, "type": "t", "data": {"a": ""}}),
            json!(["wire", "t", 1, "5m21s"]),
        ),
        ("ServiceAccount", json!({"metadata": metadata}), json!(["wire", "5m21s"])),
        (
            "Lease",
            json!({"metadata": metadata, "spec": {"holderIdentity": "h"}}),
            json!(["wire", "h", "5m21s"]),
        ),
        (
            "PriorityClass",
            json!({"metadata": metadata, "value": -7, "preemptionPolicy": "Never"}),
            json!(["wire", -7, false, "5m21s", "Never"]),
        ),
        (
            "StorageClass",
            json!({"metadata": default, "provisioner": "p", "reclaimPolicy": "Delete",
                "volumeBindingMode": "Immediate", "allowVolumeExpansion": true}),
            json!(["wire (default)", "p", "Delete", "Immediate", true, "5m21s"]),
        ),
        ("ServiceAccount", json!({}), json!(["", "<unknown>"])),
    ]);
}

#[test]
fn an_event_shows_its_first_and_last_occurrence() {
    let event = json!({
        "metadata": metadata(), "reason": "R", "type": "Normal", "message": " m\n", "count": 7,
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{x}"},
        "firstTimestamp": "2020-01-02T03:04:05Z", "reportingComponent": "c", "reportingInstance": "i",
    });
    let mut series = event.clone();
    series["series"] = json!({"count": 2, "lastObservedTime": "2026-11-16T00:20:07.123456Z"});
    series["source"] = json!({"component": "kubelet", "host": "node1"});
    rows(vec![
        (
            "Event",
            event,
            json!(["6y319d", "Normal", "R", "pod/p", "spec.containers{x}", "c, i", "m", "6y319d", 7, "wire"]),
        ),
        (
            "Event",
            series,
            json!([
                "1s",
                "Normal",
                "R",
                "pod/p",
                "spec.containers{x}",
                "kubelet, node1",
                "m",
                "6y319d",
                2,
                "wire"
            ]),
        ),
        (
            "Event",
            json!({"involvedObject": {"kind": "Node"}, "eventTime": "2026-11-16T00:20:07.123456Z"}),
            json!(["1s", "", "", "node", "", "", "", "1s", 1, ""]),
        ),
        ("Event", json!({}), json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, ""])),
    ]);
}
