//! Roles and bindings, indexed by user and group: a decision reads only the rules of its caller.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use model::error::quote;

use super::GROUP;
use super::rule::{Binding, Caller, PolicyRule, RequestAttributes, Role, RoleRef, Subject};

/// The decision of RBAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A rule allows the request; the text names the binding.
    Allowed(String),
    /// No rule allows the request; the text lists bindings to missing roles, and is empty if there are none.
    NoRule(String),
}

/// All roles and bindings. The namespace of cluster-scoped ones is empty.
#[derive(Debug, Default)]
pub struct Index {
    roles: HashMap<RoleKey, Arc<Role>>,
    bindings: HashMap<Key, Arc<KeyedBinding>>,
    by_role: HashMap<RoleKey, BTreeSet<Key>>,
    /// The bindings of users and groups, by namespace.
    places: HashMap<Box<str>, NamespaceIndex>,
}

/// Namespace and name.
type Key = (Box<str>, Box<str>);

/// The key of a role; the namespace is that of the binding, and empty for a ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RoleKey {
    namespace: Box<str>,
    role: RoleRef,
}

impl RoleKey {
    fn new(namespace: &str, role: &RoleRef) -> Self {
        let namespace = if &*role.kind == "ClusterRole" { "" } else { namespace };
        Self { namespace: namespace.into(), role: role.clone() }
    }
}

/// The bindings of users and groups in one namespace or cluster-wide. A service account is stored as its user.
#[derive(Debug, Default)]
struct NamespaceIndex {
    users: HashMap<Box<str>, Held>,
    groups: HashMap<Box<str>, Held>,
}

impl NamespaceIndex {
    fn of(&mut self, subject: &SubjectKey) -> &mut HashMap<Box<str>, Held> {
        match subject {
            SubjectKey::User(_) => &mut self.users,
            SubjectKey::Group(_) => &mut self.groups,
        }
    }

    /// The bindings of a caller: those of the user, then those of its groups.
    fn held_by<'a>(&'a self, caller: Caller<'a>) -> impl Iterator<Item = &'a Held> {
        let groups = caller.groups.iter().filter_map(|group| self.groups.get(group.as_str()));
        self.users.get(caller.name).into_iter().chain(groups)
    }
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SubjectKey {
    User(Box<str>),
    Group(Box<str>),
}

impl SubjectKey {
    fn new(subject: &Subject, namespace: &str) -> Option<Self> {
        match &*subject.kind {
            "User" => Some(Self::User(subject.name.clone())),
            "Group" => Some(Self::Group(subject.name.clone())),
            _ => subject.account(namespace).map(|account| Self::User(account.into())),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::User(name) | Self::Group(name) => name,
        }
    }
}

/// A binding with its key.
#[derive(Debug)]
struct KeyedBinding {
    key: Key,
    binding: Binding,
}

impl KeyedBinding {
    fn role(&self) -> RoleKey {
        RoleKey::new(&self.key.0, &self.binding.role_ref)
    }

    fn subjects(&self) -> BTreeSet<SubjectKey> {
        self.binding.subjects.iter().filter_map(|subject| SubjectKey::new(subject, &self.key.0)).collect()
    }

    /// The reason of a decision in Kubernetes' words.
    fn described(&self, caller: Caller<'_>) -> String {
        let (namespace, name) = (&*self.key.0, &*self.key.1);
        let RoleRef { kind, name: role } = &self.binding.role_ref;
        let subject = self.binding.subjects.iter().find(|subject| subject.means(caller, namespace));
        let subject = subject.map(|subject| subject.described(namespace)).unwrap_or_default();
        let binding = match namespace {
            "" => format!("ClusterRoleBinding {}", quote(name)),
            _ => format!("RoleBinding {}", quote(&format!("{name}/{namespace}"))),
        };
        format!("{binding} of {kind} {} to {subject}", quote(role))
    }
}

/// The bindings of one user or group in one namespace.
#[derive(Debug, Default)]
struct Held {
    /// By name.
    bindings: BTreeMap<Box<str>, Arc<KeyedBinding>>,
    /// Built on first use, and rebuilt after a change of a binding or of one of its roles.
    rules: OnceLock<Rules>,
}

/// The rules of all bindings, indexed by resource, name and path.
#[derive(Debug, Default)]
struct Rules {
    /// Rules without resource names, by resource as the rule has it.
    by_resource: HashMap<Box<str>, Vec<Granted>>,
    /// Rules with resource names, by name.
    by_name: HashMap<Box<str>, Vec<Granted>>,
    /// Rules by exact path.
    by_path: HashMap<Box<str>, Vec<Granted>>,
    /// Rules with a path that ends with `*`.
    by_prefix: Vec<Granted>,
    /// Missing roles of bindings.
    lacking: Vec<RoleRef>,
}

/// A rule and the binding that grants it.
#[derive(Clone, Debug)]
struct Granted {
    by: Arc<KeyedBinding>,
    role: Arc<Role>,
    rule: usize,
}

impl Granted {
    fn rule(&self) -> &PolicyRule {
        &self.role.rules[self.rule]
    }
}

impl Rules {
    fn of(index: &Index, bindings: &BTreeMap<Box<str>, Arc<KeyedBinding>>) -> Self {
        let mut rules = Self::default();
        for by in bindings.values() {
            let Some(role) = index.resolve(by) else {
                rules.lacking.push(by.binding.role_ref.clone());
                continue;
            };
            for rule in 0..role.rules.len() {
                rules.add(&Granted { by: by.clone(), role: role.clone(), rule });
            }
        }
        rules
    }

    fn add(&mut self, granted: &Granted) {
        let rule = granted.rule();
        let mut put = |into: fn(&mut Self) -> &mut HashMap<Box<str>, Vec<Granted>>, keys: &[Box<str>]| {
            for key in keys {
                into(self).entry(key.clone()).or_default().push(granted.clone());
            }
        };
        if rule.resource_names.is_empty() {
            put(|rules| &mut rules.by_resource, &rule.resources);
        } else {
            put(|rules| &mut rules.by_name, &rule.resource_names);
        }
        let (prefixes, paths): (Vec<_>, Vec<_>) =
            rule.paths.iter().cloned().partition(|path| path.ends_with('*'));
        put(|rules| &mut rules.by_path, &paths);
        if !prefixes.is_empty() {
            self.by_prefix.push(granted.clone());
        }
    }

    fn find(&self, request: RequestAttributes<'_>) -> Option<&Granted> {
        let fits = |granted: &&Granted| granted.rule().allows(request);
        match request {
            RequestAttributes::Resource { resource, subresource, name, .. } => {
                let of = |key: &str| self.by_resource.get(key)?.iter().find(fits);
                let found = if subresource.is_empty() {
                    of(resource)
                } else {
                    of(&format!("{resource}/{subresource}")).or_else(|| of(&format!("*/{subresource}")))
                };
                found.or_else(|| of("*")).or_else(|| self.by_name.get(name)?.iter().find(fits))
            }
            RequestAttributes::Path { path, .. } => {
                let exact = self.by_path.get(path).and_then(|rules| rules.iter().find(fits));
                exact.or_else(|| self.by_prefix.iter().find(fits))
            }
        }
    }
}

impl Index {
    /// Adds, replaces or removes a role.
    pub fn set_role(&mut self, namespace: &str, name: &str, role: Option<Role>) {
        let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
        let key = RoleKey::new(namespace, &RoleRef { kind: kind.into(), name: name.into() });
        for binding in self.by_role.get(&key).into_iter().flatten() {
            let (named, place) = (self.bindings.get(binding), self.places.get_mut(&binding.0));
            let Some((named, place)) = named.zip(place) else { continue };
            for subject in named.subjects() {
                if let Some(held) = place.of(&subject).get_mut(subject.name()) {
                    held.rules = OnceLock::new();
                }
            }
        }
        match role {
            Some(role) => self.roles.insert(key, Arc::new(role)),
            None => self.roles.remove(&key),
        };
    }

    /// Adds, replaces or removes a binding.
    pub fn set_binding(&mut self, namespace: &str, name: &str, binding: Option<Binding>) {
        let key: Key = (namespace.into(), name.into());
        if let Some(old) = self.bindings.remove(&key) {
            self.unbind(&old);
        }
        let Some(binding) = binding else { return };
        let named = Arc::new(KeyedBinding { key: key.clone(), binding });
        self.by_role.entry(named.role()).or_default().insert(key.clone());
        let place = self.places.entry(key.0.clone()).or_default();
        for subject in named.subjects() {
            let held = place.of(&subject).entry(subject.name().into()).or_default();
            held.bindings.insert(key.1.clone(), named.clone());
            held.rules = OnceLock::new();
        }
        self.bindings.insert(key, named);
    }

    fn unbind(&mut self, old: &KeyedBinding) {
        let role = old.role();
        if let Some(of_role) = self.by_role.get_mut(&role) {
            of_role.remove(&old.key);
            if of_role.is_empty() {
                self.by_role.remove(&role);
            }
        }
        let Some(place) = self.places.get_mut(&old.key.0) else { return };
        for subject in old.subjects() {
            let all = place.of(&subject);
            let Some(held) = all.get_mut(subject.name()) else { continue };
            held.bindings.remove(&old.key.1);
            held.rules = OnceLock::new();
            if held.bindings.is_empty() {
                all.remove(subject.name());
            }
        }
        if place.users.is_empty() && place.groups.is_empty() {
            self.places.remove(&old.key.0);
        }
    }

    /// Removes all roles or all bindings, either cluster-scoped or namespaced.
    pub fn clear(&mut self, bindings: bool, of_cluster: bool) {
        if bindings {
            let keys: Vec<Key> =
                self.bindings.keys().filter(|key| key.0.is_empty() == of_cluster).cloned().collect();
            keys.iter().for_each(|(namespace, name)| self.set_binding(namespace, name, None));
        } else {
            let keys = self.roles.keys().filter(|key| key.namespace.is_empty() == of_cluster);
            let keys: Vec<RoleKey> = keys.cloned().collect();
            keys.iter().for_each(|key| self.set_role(&key.namespace, &key.role.name, None));
        }
    }

    /// Decides whether a caller may make a request.
    pub fn decide(&self, caller: Caller<'_>, request: RequestAttributes<'_>) -> Verdict {
        let namespace = match request {
            RequestAttributes::Resource { namespace, .. } => namespace,
            RequestAttributes::Path { .. } => "",
        };
        let mut lacking = Vec::new();
        for rules in self.rules_held(caller, namespace) {
            if let Some(granted) = rules.find(request) {
                return Verdict::Allowed(granted.by.described(caller));
            }
            lacking.extend(rules.lacking.iter().cloned());
        }
        Verdict::NoRule(not_found(&lacking, Words::Singular))
    }

    /// All rules of a caller in a namespace, and the missing roles of its bindings.
    pub fn rules_of(&self, caller: Caller<'_>, namespace: &str) -> (Vec<PolicyRule>, Vec<RoleRef>) {
        let (mut rules, mut lacking) = (Vec::new(), Vec::new());
        for place in self.places(namespace) {
            // A binding counts once, even if several of its subjects match the caller.
            let held = place.held_by(caller).flat_map(|held| &held.bindings);
            let held: BTreeMap<&str, &Arc<KeyedBinding>> =
                held.map(|(name, named)| (&**name, named)).collect();
            for named in held.values() {
                match self.resolve(named) {
                    Some(role) => rules.extend(role.rules.iter().cloned()),
                    None => lacking.push(named.binding.role_ref.clone()),
                }
            }
        }
        (rules, lacking)
    }

    /// The role that a binding in this namespace refers to.
    pub fn role(&self, namespace: &str, role: &RoleRef) -> Option<Arc<Role>> {
        self.roles.get(&RoleKey::new(namespace, role)).cloned()
    }

    fn resolve(&self, named: &KeyedBinding) -> Option<Arc<Role>> {
        self.role(&named.key.0, &named.binding.role_ref)
    }

    fn rules_held<'a>(&'a self, caller: Caller<'a>, namespace: &'a str) -> impl Iterator<Item = &'a Rules> {
        let held = self.places(namespace).flat_map(move |place| place.held_by(caller));
        held.map(|held| held.rules.get_or_init(|| Rules::of(self, &held.bindings)))
    }

    /// The cluster-wide bindings, and those of a namespace if it is not empty.
    fn places<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a NamespaceIndex> {
        let names = std::iter::once("").chain((!namespace.is_empty()).then_some(namespace));
        names.filter_map(|name| self.places.get(name))
    }
}

/// The form of a kind in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// `role`
    Singular,
    /// `roles`
    Plural,
}

/// Kubernetes' message about missing roles; empty if there are none.
pub fn not_found(roles: &[RoleRef], words: Words) -> String {
    let mut all: Vec<String> = Vec::new();
    for role in roles {
        let plural = if words == Words::Plural { "s" } else { "" };
        let kind = role.kind.to_lowercase();
        let message = format!("{kind}{plural}.{GROUP} {} not found", quote(&role.name));
        if !all.contains(&message) {
            all.push(message);
        }
    }
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
