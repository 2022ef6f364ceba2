//! Event of `events.k8s.io`, stored as the Event of the core group: the same fields with other names.

use model::Object;

use super::Conversion;

pub(super) const CONVERSION: Conversion = Conversion {
    to_stored: |object| {
        rename(object, |(own, stored)| (own, stored));
        // The core group encodes these even if they are empty.
        for field in REPORTING {
            object.entry(field).or_insert_with(|| "".into());
        }
    },
    from_stored: |object| {
        for field in REPORTING {
            if object.get(field).is_some_and(|value| value == "") {
                object.remove(field);
            }
        }
        rename(object, |(own, stored)| (stored, own));
    },
    fields: &[
        ("metadata.name", "metadata.name"),
        ("metadata.namespace", "metadata.namespace"),
        ("reason", "reason"),
        ("regarding.kind", "involvedObject.kind"),
        ("regarding.namespace", "involvedObject.namespace"),
        ("regarding.name", "involvedObject.name"),
        ("regarding.uid", "involvedObject.uid"),
        ("regarding.apiVersion", "involvedObject.apiVersion"),
        ("regarding.resourceVersion", "involvedObject.resourceVersion"),
        ("regarding.fieldPath", "involvedObject.fieldPath"),
        ("reportingController", "reportingComponent"),
        ("type", "type"),
    ],
};

const REPORTING: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// Names in `events.k8s.io` and in the core group.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

type Names = (&'static str, &'static str);

fn rename(object: &mut Object, direction: fn(Names) -> Names) {
    for names in NAMES {
        let (from, to) = direction(names);
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}
