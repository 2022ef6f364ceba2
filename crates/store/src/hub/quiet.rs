//! Index of the quiet watches of a resource by the changes that could touch them, so that a change tests few
//! of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::Attributes;
use model::selector::{Target, Test};

use super::topic::Subscription;
use crate::event::{SharedChange, WatchScope};
use crate::listing::{indexable, values_of};

/// Quiet watches by namespace and name. `None` stands for all.
#[derive(Default)]
pub(crate) struct Quiet {
    buckets: HashMap<Option<String>, HashMap<Option<String>, Bucket>>,
}

/// Watches of equal namespace and name.
#[derive(Default)]
struct Bucket {
    /// Watches that every change is tested against.
    any: Group,
    /// Watches that select one value of a label or field; only changes from or to that value are tested.
    by_value: Vec<(Target, String, HashMap<String, Group>)>,
}

type Group = BTreeMap<u64, Arc<Subscription>>;

impl Quiet {
    /// Adds a watch.
    pub fn insert(&mut self, subscription: &Arc<Subscription>) {
        let (namespace, name) = place(&subscription.scope);
        let bucket = self.buckets.entry(namespace).or_default().entry(name).or_default();
        bucket.group(&subscription.scope).insert(subscription.id, Arc::clone(subscription));
    }

    /// Removes a watch, if it is there.
    pub fn remove(&mut self, subscription: &Arc<Subscription>) {
        let (namespace, name) = place(&subscription.scope);
        let Some(names) = self.buckets.get_mut(&namespace) else { return };
        let Some(bucket) = names.get_mut(&name) else { return };
        bucket.group(&subscription.scope).remove(&subscription.id);
        bucket.tidy();
        names.retain(|_, bucket| !bucket.is_empty());
        self.buckets.retain(|_, names| !names.is_empty());
    }

    /// Removes the watches that a change touches, and appends them to `out`.
    pub fn take_touched(&mut self, change: &SharedChange, out: &mut Vec<Arc<Subscription>>) {
        for namespace in [None, Some(change.key.namespace.clone())] {
            let Some(names) = self.buckets.get_mut(&namespace) else { continue };
            for name in [None, Some(change.key.name.clone())] {
                if let Some(bucket) = names.get_mut(&name) {
                    bucket.take_touched(change, out);
                    if bucket.is_empty() {
                        names.remove(&name);
                    }
                }
            }
            if names.is_empty() {
                self.buckets.remove(&namespace);
            }
        }
    }

    /// Removes all watches.
    pub fn take_all(&mut self) -> Vec<Arc<Subscription>> {
        let names = std::mem::take(&mut self.buckets).into_values().flatten();
        let groups = names.flat_map(|(_, bucket)| {
            let by_value = bucket.by_value.into_iter().flat_map(|(_, _, values)| values.into_values());
            by_value.chain([bucket.any])
        });
        groups.flat_map(BTreeMap::into_values).collect()
    }
}

impl Bucket {
    fn group(&mut self, scope: &WatchScope) -> &mut Group {
        let single = indexable(&scope.selector).find_map(|requirement| match &requirement.test {
            Test::In(values) if values.len() == 1 => Some((requirement.target, &requirement.key, &values[0])),
            _ => None,
        });
        let Some((target, key, value)) = single else { return &mut self.any };
        let known = self.by_value.iter().position(|(t, k, _)| *t == target && k == key);
        let place = known.unwrap_or_else(|| {
            self.by_value.push((target, key.clone(), HashMap::new()));
            self.by_value.len() - 1
        });
        self.by_value[place].2.entry(value.clone()).or_default()
    }

    fn take_touched(&mut self, change: &SharedChange, out: &mut Vec<Arc<Subscription>>) {
        take_touched(&mut self.any, change, out);
        for (target, key, values) in &mut self.by_value {
            let is = value_of(*target, key, &change.attributes);
            let was = value_of(*target, key, &change.previous_attributes);
            for value in [is, was].into_iter().flatten() {
                if let Some(group) = values.get_mut(value) {
                    take_touched(group, change, out);
                    if group.is_empty() {
                        values.remove(value);
                    }
                }
            }
        }
        self.by_value.retain(|(_, _, values)| !values.is_empty());
    }

    fn tidy(&mut self) {
        for (_, _, values) in &mut self.by_value {
            values.retain(|_, group| !group.is_empty());
        }
        self.by_value.retain(|(_, _, values)| !values.is_empty());
    }

    fn is_empty(&self) -> bool {
        self.any.is_empty() && self.by_value.is_empty()
    }
}

fn take_touched(group: &mut Group, change: &SharedChange, out: &mut Vec<Arc<Subscription>>) {
    group.retain(|_, subscription| {
        let touched = subscription.touch(change);
        if touched {
            out.push(Arc::clone(subscription));
        }
        !touched
    });
}

fn value_of<'a>(target: Target, key: &str, attributes: &'a Attributes) -> Option<&'a str> {
    match target {
        Target::Label => attributes.label(key),
        Target::Field => attributes.field(key),
    }
}

/// The namespace and the name that a watch is confined to, by its scope or by its field selector.
fn place(scope: &WatchScope) -> (Option<String>, Option<String>) {
    let single = |field| match values_of(&scope.selector, field) {
        Some([one]) => Some(one.clone()),
        _ => None,
    };
    let namespace = scope.namespace.clone().or_else(|| single("metadata.namespace"));
    let name = scope.name.clone().or_else(|| single("metadata.name"));
    (namespace, name)
}
