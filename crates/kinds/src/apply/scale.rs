//! The field managers of a Scale: the managers of the replicas of its object.

use std::borrow::Cow;

use serde_json::Value;

use super::element::Element;
use super::managers::{Manager, Managers};
use super::set::FieldSet;
use super::track::{Tracked, finish};

/// The version that scales have.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in each version of a kind.
#[derive(Clone, Debug)]
pub struct ScaleManagers<'a> {
    /// The version of the request.
    pub api_version: &'a str,
    /// `apiVersion` and path; no path if the version has no scale subresource.
    pub replicas: Vec<(&'a str, Option<Vec<&'a str>>)>,
}

impl<'a> ScaleManagers<'a> {
    fn path(&self, api_version: &str) -> Option<Option<Vec<Element<'a>>>> {
        let found = self.replicas.iter().find(|(version, _)| *version == api_version);
        let elements = |path: &Vec<&'a str>| path.iter().map(|name| Element::field(name)).collect();
        found.map(|(_, path)| path.as_ref().map(elements))
    }

    /// `metadata.managedFields` of the Scale, computed from those of the object.
    pub fn of_scale(&self, parent: Option<&Value>) -> Option<Value> {
        let mut managers = Managers::decode(parent).unwrap_or_default();
        managers.entries.retain_mut(|manager| {
            let Some(Some(path)) = self.path(&manager.api_version) else { return false };
            let owns = manager.fields.has(&path);
            manager.fields = in_scale();
            manager.api_version = Cow::Borrowed(SCALE_VERSION);
            owns
        });
        managers.sort();
        managers.encode().and_then(|json| serde_json::from_str(&json).ok())
    }

    /// The managers of the object after a write of its Scale.
    pub fn of_object(&self, parent: Option<&Value>, scale: Option<&Value>) -> Tracked {
        let before = Managers::decode(parent).unwrap_or_default();
        let mut scale = Managers::decode(scale).unwrap_or_default();
        let times: Vec<(Manager<'_>, Option<Cow<'_, str>>)> = before
            .entries
            .iter()
            .map(|manager| (Manager { fields: FieldSet::new(), ..manager.clone() }, manager.time.clone()))
            .collect();
        let mut managers = Managers::default();
        for mut manager in before.entries {
            let Some(path) = self.path(&manager.api_version) else { continue };
            if let Some(path) = path.filter(|path| manager.fields.has(path)) {
                // An Update entry has another version there, so it is treated as another manager, as in Kubernetes.
                match scale.entries.iter().position(|of_scale| of_scale.is_same(&manager)) {
                    Some(at) => {
                        scale.entries.swap_remove(at);
                    }
                    None => manager.fields = manager.fields.difference(&FieldSet::of(&path)),
                }
            }
            if !manager.fields.is_empty() {
                managers.entries.push(manager);
            }
        }
        let path = self.path(self.api_version).flatten().unwrap_or_default();
        let owns =
            |manager: &Manager<'_>| manager.fields.has(&[Element::field("spec"), Element::field("replicas")]);
        for manager in scale.entries.into_iter().filter(owns) {
            let (fields, api_version) = (FieldSet::of(&path), Cow::Owned(self.api_version.to_owned()));
            let time =
                times.iter().find(|(known, _)| known.is_same(&manager)).and_then(|(_, time)| time.clone());
            managers.entries.push(Manager { fields, api_version, time, ..manager });
        }
        managers.sort();
        finish(&managers, parent, None)
    }
}

fn in_scale<'a>() -> FieldSet<'a> {
    FieldSet::of(&[Element::field("spec"), Element::field("replicas")])
}
