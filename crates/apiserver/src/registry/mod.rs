//! The registry: the served resource types, by group, version and plural.

pub mod custom;
pub mod resource_type;
mod served;
pub mod strategy;
pub mod table;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub use custom::Crd;
pub use resource_type::{ResourceType, StoredAs, Subresource};
pub use served::Served;
pub use strategy::{Object, Strategy};
pub use table::TableRenderer;

/// All resource types: the registered ones in order, then those of CRDs. Immutable: a change creates a new registry that
/// shares the unchanged parts.
#[derive(Clone, Default)]
pub struct Registry {
    registered: Arc<Registered>,
    /// By group and plural.
    crds: BTreeMap<Arc<str>, Arc<CrdGroup>>,
    /// The number of types so far, for [`Served::view`].
    views: u32,
}

/// The CRDs of one group, by plural.
type CrdGroup = BTreeMap<Arc<str>, Arc<Crd>>;

/// The registered types.
#[derive(Clone, Default)]
struct Registered {
    types: Vec<Arc<Served>>,
    by_path: HashMap<String, HashMap<String, HashMap<String, Arc<Served>>>>,
}

impl Registry {
    /// Adds a type; replaces one of the same group, version and plural.
    pub fn register(&mut self, resource_type: ResourceType) {
        self.views += 1;
        let resource_type = Arc::new(Served::new(resource_type, self.views));
        let Registered { types, by_path } = Arc::make_mut(&mut self.registered);
        let same = |other: &Arc<Served>| {
            (&other.group, &other.version, &other.plural)
                == (&resource_type.group, &resource_type.version, &resource_type.plural)
        };
        match types.iter().position(same) {
            Some(at) => types[at] = resource_type.clone(),
            None => types.push(resource_type.clone()),
        }
        let versions = by_path.entry(resource_type.group.clone()).or_default();
        let plurals = versions.entry(resource_type.version.clone()).or_default();
        plurals.insert(resource_type.plural.clone(), resource_type);
    }

    /// The type of a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        let registered = || self.registered.by_path.get(group)?.get(version)?.get(plural);
        registered().or_else(|| self.crd(group, plural)?.served(version))
    }

    /// The CRD of a resource, served or not.
    pub fn crd(&self, group: &str, plural: &str) -> Option<&Arc<Crd>> {
        self.crds.get(group)?.get(plural)
    }

    /// The CRD of this object name.
    pub fn crd_by_name(&self, name: &str) -> Option<&Arc<Crd>> {
        let (plural, group) = name.split_once('.')?;
        self.crd(group, plural)
    }

    /// All CRDs of a group.
    pub fn crds(&self, group: &str) -> impl Iterator<Item = &Arc<Crd>> {
        self.crds.get(group).into_iter().flat_map(|group| group.values())
    }

    /// All CRDs.
    pub fn all_crds(&self) -> impl Iterator<Item = &Arc<Crd>> {
        self.crds.values().flat_map(|group| group.values())
    }

    /// Adds a CRD; replaces one of the same group and plural.
    pub(crate) fn add_crd(&mut self, crd: custom::ParsedCrd) {
        let known = self.crd(&crd.group, &crd.plural).cloned();
        let crd = Crd::new(crd, known.as_deref(), &mut self.views);
        let (group, plural) = (crd.group.clone(), crd.plural.clone());
        let crds = self.crds.entry(group).or_default();
        Arc::make_mut(crds).insert(plural, Arc::new(crd));
    }

    /// Removes a CRD by its object name, and ends watches of its objects.
    pub(crate) fn remove_crd(&mut self, name: &str) {
        let Some((plural, group)) = name.split_once('.') else { return };
        let Some(crds) = self.crds.get_mut(group) else { return };
        if let Some(gone) = Arc::make_mut(crds).remove(plural) {
            gone.end();
        }
        if crds.is_empty() {
            self.crds.remove(group);
        }
    }

    /// Whether a group has registered types.
    pub fn has_group(&self, group: &str) -> bool {
        self.registered.by_path.contains_key(group)
    }

    /// All types.
    pub fn types(&self) -> impl Iterator<Item = &Arc<Served>> {
        let of_crds = self.all_crds().flat_map(|crd| crd.types());
        self.registered.types.iter().chain(of_crds)
    }

    /// Groups with their versions; the core group is empty. Registered groups come first in order, then those of CRDs by
    /// name, each with its versions by priority.
    pub fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for served in &self.registered.types {
            let group = match groups.iter_mut().find(|(name, _)| *name == served.group) {
                Some(group) => group,
                None => {
                    groups.push((&served.group, Vec::new()));
                    groups.last_mut().expect("it was pushed just now")
                }
            };
            if !group.1.contains(&served.version.as_str()) {
                group.1.push(&served.version);
            }
        }
        for (name, crds) in &self.crds {
            let types = crds.values().flat_map(|crd| crd.types());
            let mut versions: Vec<&str> = types.map(|served| served.version.as_str()).collect();
            versions.sort_by(|a, b| custom::version_order(a, b));
            versions.dedup();
            if !self.has_group(name) {
                groups.extend((!versions.is_empty()).then_some((&**name, versions)));
            } else if let Some(group) = groups.iter_mut().find(|(known, _)| *known == &**name) {
                versions.retain(|version| !group.1.contains(version));
                group.1.extend(versions);
            }
        }
        groups
    }

    /// The types of one group version.
    pub fn of_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a ResourceType> {
        let of_version = move |t: &&'a Arc<Served>| t.group == group && t.version == version;
        let registered = self.registered.types.iter().filter(of_version);
        let of_crds = self.crds(group).filter_map(move |crd| crd.served(version));
        registered.chain(of_crds).map(|served| &***served)
    }
}
