//! Server-side apply of a configuration: the resulting object and its field managers.

use std::borrow::Cow;

use model::Object;
use model::error::{Error, quote};
use serde_json::Value;

use super::check::check;
use super::element::{Element, equal};
use super::fields::{fields_of, with_named_fields};
use super::last_applied;
use super::managers::{Manager, Managers, Operation};
use super::merge::merge;
use super::remove::without_fields;
use super::set::{FieldSet, path_text};
use super::track::{
    Changes, Tracked, UnknownVersion, Version, WriteContext, finish, managed_fields, reconcile, stripped,
    update, views,
};

/// The manager of all fields of an object that had no managers before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager that takes over the fields of client-side apply.
const KUBECTL: &str = "kubectl";

/// The outcome of an apply.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The object in the version of the request, before defaulting and pruning; `None` if it does not change.
    pub object: Option<Object>,
    /// Its field managers.
    pub tracked: Tracked,
}

/// The reason why a configuration cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields that the configuration changes.
    Conflicts(Vec<Conflict>),
    /// The request is invalid.
    BadRequest(String),
    /// The configuration does not match its type, or cannot be merged.
    Failed(String),
}

/// A field with another owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The identifier of the manager; conflicts are sorted by it.
    id: String,
    /// The manager as the message names it.
    manager: String,
    /// The field as the message names it.
    path: String,
}

impl Conflict {
    pub(super) fn new(manager: &Manager<'_>, path: &[Element<'_>]) -> Self {
        let Manager { name, operation, api_version, subresource, .. } = manager;
        let mut words = quote(name);
        if !subresource.is_empty() {
            words.push_str(&format!(" with subresource {}", quote(subresource)));
        }
        if *operation == Operation::Update {
            words.push_str(&format!(" using {api_version}"));
        }
        let id = format!("{name}\"{operation:?}\"{api_version}\"{subresource}");
        Self { id, manager: words, path: path_text(path) }
    }
}

impl From<ApplyError> for Error {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::BadRequest(message) => Self::BadRequest { message },
            ApplyError::Failed(message) => Self::Failed { message },
            ApplyError::Conflicts(conflicts) => {
                let causes = conflicts.iter();
                let causes =
                    causes.map(|c| (format!("conflict with {}", c.manager), c.path.clone())).collect();
                Self::ApplyConflict { message: conflict_message(&conflicts), causes }
            }
        }
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.path);
    }
    let mut lines = Vec::new();
    for of_manager in conflicts.chunk_by(|a, b| a.id == b.id) {
        lines.push(format!("conflicts with {}:", of_manager[0].manager));
        lines.extend(of_manager.iter().map(|conflict| format!("- {}", conflict.path)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// Applies a configuration, which has its kind and version, to the stored object; `None` creates one.
///
/// # Errors
/// The configuration conflicts with other managers, or does not match its type.
pub fn apply(
    context: &WriteContext<'_>,
    live: Option<&Object>,
    config: &Object,
    force: bool,
) -> Result<Applied, ApplyError> {
    let is_list = config.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    if is_list.is_some_and(Value::is_array) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    let version = context
        .version()
        .ok_or_else(|| ApplyError::Failed(format!("no corresponding type for {}", context.api_version)))?;
    let known = live.and_then(managed_fields);
    let view = live.map_or(Cow::Borrowed(version.empty), |live| version.view(live));
    let attempt = Attempt { context, version, live: &view, known, config };
    let mut applied = match attempt.run(force) {
        Err(ApplyError::Conflicts(conflicts)) if context.manager == KUBECTL => {
            let allowed = last_applied::owned(version.types, context.api_version, &view);
            let rest: Vec<Conflict> =
                conflicts.into_iter().filter(|conflict| !allowed.contains(&conflict.path)).collect();
            if !rest.is_empty() {
                return Err(ApplyError::Conflicts(rest));
            }
            attempt.run(true)?
        }
        other => other?,
    };
    if context.manager == KUBECTL && last_applied::is_set(applied.object.as_ref().unwrap_or(&view)) {
        let object = applied.object.get_or_insert_with(|| view.into_owned());
        last_applied::refresh(object, config);
    }
    Ok(applied)
}

struct Attempt<'s, 'a> {
    context: &'s WriteContext<'a>,
    version: Version<'a>,
    live: &'s Object,
    known: Option<&'s Value>,
    config: &'s Object,
}

impl Attempt<'_, '_> {
    fn run(&self, force: bool) -> Result<Applied, ApplyError> {
        let (context, version) = (self.context, self.version);
        let mut typed = self.config.clone();
        typed.remove("apiVersion");
        typed.remove("kind");
        check(version.types, &typed).map_err(|problem| {
            ApplyError::Failed(format!("failed to create typed patch object ({}): {problem}", self.subject()))
        })?;
        let mut managers = self.managers()?;
        reconcile(context, &mut managers).map_err(|UnknownVersion(version)| {
            ApplyError::Failed(format!("request to convert CR to an invalid group/version: {version}"))
        })?;
        let merged = merge(version.types, self.live, &typed)
            .map_err(|problem| ApplyError::Failed(format!("failed to merge config: {problem}")))?;
        let fields = context.reset.filter(fields_of(version.types, &typed));
        let mut applier = context.manager(Operation::Apply, fields);
        let last = managers.entries.iter().find(|known| known.is_same(&applier)).cloned();
        applier.time = last.as_ref().and_then(|last| last.time.clone());
        managers.set(applier.clone());
        let new = match &last {
            Some(last) => prune(context, version, merged, last, &managers),
            None => merged,
        };
        let views = views(context, version, self.live, &new, &managers);
        let changes = Changes::new(context, version, self.live, &new, &views)
            .map_err(|problem| ApplyError::Failed(format!("failed to compare objects: {problem}")))?;
        let is_applier = |manager: &Manager<'_>| manager.is_same(&applier);
        let mut conflicts = changes.conflicts(&managers, is_applier);
        if !force && !conflicts.is_empty() {
            conflicts.sort_by(|a, b| a.id.cmp(&b.id));
            return Err(ApplyError::Conflicts(conflicts));
        }
        changes.release(&mut managers, is_applier);
        let is_changed = !same(self.live, &new);
        managers.entries.retain_mut(|manager| {
            if is_applier(manager) {
                manager.fields = stripped(std::mem::take(&mut manager.fields));
                if is_changed {
                    manager.time = Some(Cow::Borrowed(context.now));
                }
            }
            !manager.fields.is_empty()
        });
        managers.sort();
        let tracked = finish(&managers, self.known, Some(context.now));
        drop(managers);
        Ok(Applied { object: is_changed.then_some(new), tracked })
    }

    /// The managers of the live object. Without any, an unnamed manager owns all present fields.
    fn managers(&self) -> Result<Managers<'_>, ApplyError> {
        let managers = Managers::decode(self.known)
            .map_err(|problem| ApplyError::Failed(format!("failed to decode managed fields: {problem}")))?;
        if !managers.is_empty() {
            return Ok(managers);
        }
        let before = WriteContext { manager: BEFORE_FIRST_APPLY, ..*self.context };
        let managers = update(&before, self.version, self.version.empty, self.live, managers);
        managers.ok_or_else(|| ApplyError::Failed("failed to create manager for existing fields".to_owned()))
    }

    /// The configuration as messages name it.
    fn subject(&self) -> String {
        let text = |key: &str| {
            let value = self.config.get("metadata").and_then(|metadata| metadata.get(key));
            value.and_then(Value::as_str).unwrap_or("")
        };
        let kind = self.config.get("kind").and_then(Value::as_str).unwrap_or("");
        let version = self.context.api_version;
        let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
        format!("{}/{}; {version}, Kind={kind}", text("namespace"), text("name"))
    }
}

fn same(live: &Object, new: &Object) -> bool {
    live.len() == new.len()
        && live.iter().all(|(key, value)| new.get(key).is_some_and(|other| equal(value, other)))
}

/// Removes the fields that the manager applied before and that have no owner now.
fn prune(
    context: &WriteContext<'_>,
    version: Version<'_>,
    merged: Object,
    last: &Manager<'_>,
    managers: &Managers<'_>,
) -> Object {
    let Some(then) = context.versions.version(&last.api_version) else { return merged };
    if last.fields.is_empty() {
        return merged;
    }
    let merged = version.convert(Cow::Owned(merged), &then).into_owned();
    let given_up = with_named_fields(last.fields.clone(), Some(then.types));
    let mut pruned = without_fields(then.types, &merged, &given_up);
    let mut present = then;
    let mut whole = Cow::Borrowed(&merged);
    for api_version in versions_of(managers, &last.api_version) {
        let Some(next) = context.versions.version(&api_version) else { continue };
        whole = present.convert(whole, &next);
        pruned = present.convert(Cow::Owned(pruned), &next).into_owned();
        present = next;
        let named = |set| with_named_fields(set, Some(next.types));
        let owned = managers.entries.iter().filter(|manager| manager.api_version == api_version);
        let owned = owned.map(|manager| manager.fields.clone()).fold(FieldSet::new(), FieldSet::union);
        let kept = named(fields_of(next.types, &pruned)).union(named(owned));
        let gone = named(fields_of(next.types, &whole)).difference(&kept);
        let without = without_fields(next.types, &whole, &gone);
        drop((kept, gone));
        pruned = without;
    }
    let pruned = present.convert(Cow::Owned(pruned), &then);
    let named = |set| with_named_fields(set, Some(then.types));
    let gone = named(fields_of(then.types, &merged)).difference(&named(fields_of(then.types, &pruned)));
    let without = without_fields(then.types, &merged, &gone.intersection(&given_up));
    then.convert(Cow::Owned(without), &version).into_owned()
}

/// All versions that managers use, `first` at the front.
fn versions_of(managers: &Managers<'_>, first: &str) -> Vec<String> {
    let mut versions = vec![first.to_owned()];
    for manager in &managers.entries {
        if !versions.iter().any(|known| *known == manager.api_version) {
            versions.push(manager.api_version.clone().into_owned());
        }
    }
    versions
}
