//! The field managers of an object after a write.

use std::borrow::Cow;

use model::Object;
use model::error::FieldError;
use serde_json::Value;

use super::compare::{Comparison, compare};
use super::config::Conflict;
use super::element::Element;
use super::fields::reconciled;
use super::managers::{Manager, Managers, Operation};
use super::reset::Reset;
use super::set::FieldSet;
use super::types::Node;
use crate::conversion::Conversion;
use crate::validation::validate_managed_fields;

/// One version of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// Its schema view: which fields are owned one by one.
    pub types: Node<'a>,
    /// An object with nothing but the fields that every object of the kind has.
    pub empty: &'a Object,
    /// The conversion from and to the stored version, if they differ.
    pub conversion: Option<&'static Conversion>,
}

/// The versions of a kind.
pub trait Versions {
    /// The version with this `apiVersion`, if it is known.
    fn version(&self, api_version: &str) -> Option<Version<'_>>;

    /// Whether managers may only name known versions. Custom objects are not converted to a version that their CRD does
    /// not have: an apply fails, and any other write drops all managers. For built-in kinds only the manager of the
    /// unknown version is dropped.
    fn must_be_known(&self) -> bool {
        false
    }
}

/// The parameters of a write that field management needs.
#[derive(Clone, Copy)]
pub struct WriteContext<'a> {
    /// The versions of the kind.
    pub versions: &'a dyn Versions,
    /// The version of the request.
    pub api_version: &'a str,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// The fields that the write cannot change.
    pub reset: Reset,
    /// The manager of the write.
    pub manager: &'a str,
    /// The present time in the format of objects.
    pub now: &'a str,
}

/// The managers of an object after a write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tracked {
    /// `metadata.managedFields` as JSON; `None` if there are no managers.
    pub json: Option<String>,
    /// The previous JSON, if only times differ.
    pub before: Option<String>,
    /// The errors of the managers that the client sent.
    pub errors: Vec<FieldError>,
}

impl Version<'_> {
    /// A stored object in this version.
    pub(super) fn view<'o>(&self, stored: &'o Object) -> Cow<'o, Object> {
        match self.conversion {
            None => Cow::Borrowed(stored),
            Some(conversion) => {
                let mut view = stored.clone();
                (conversion.from_stored)(&mut view);
                Cow::Owned(view)
            }
        }
    }

    /// Converts an object of this version to another one.
    pub(super) fn convert<'o>(&self, object: Cow<'o, Object>, to: &Self) -> Cow<'o, Object> {
        if self.conversion.is_none() && to.conversion.is_none() {
            return object;
        }
        let mut converted = object.into_owned();
        self.conversion.iter().for_each(|conversion| (conversion.to_stored)(&mut converted));
        to.conversion.iter().for_each(|conversion| (conversion.from_stored)(&mut converted));
        Cow::Owned(converted)
    }
}

impl<'a> WriteContext<'a> {
    /// The version of the request.
    pub(super) fn version(&self) -> Option<Version<'a>> {
        self.versions.version(self.api_version)
    }

    pub(super) fn manager(&self, operation: Operation, fields: FieldSet<'a>) -> Manager<'a> {
        Manager {
            name: Cow::Borrowed(self.manager),
            operation,
            api_version: Cow::Borrowed(self.api_version),
            subresource: Cow::Borrowed(self.subresource),
            time: Some(Cow::Borrowed(self.now)),
            fields,
        }
    }
}

/// `metadata.managedFields` of an object.
pub(super) fn managed_fields(object: &Object) -> Option<&Value> {
    object.get("metadata").and_then(|metadata| metadata.get("managedFields"))
}

/// Tracks a write other than an apply: `live` is the stored object (`None` for a create), `new` is the object to store,
/// with the managers that the client sent.
pub fn track(context: &WriteContext<'_>, live: Option<&Object>, new: &Object) -> Tracked {
    let sent = managed_fields(new).filter(|_| context.subresource.is_empty());
    let known = live.and_then(managed_fields);
    let given = if is_reset(sent) { Some(Managers::default()) } else { given(sent) };
    let is_given = given.is_some();
    let managers = given.unwrap_or_else(|| Managers::decode(known).unwrap_or_default());
    if managers.is_empty() && live.is_some() {
        return Tracked::default();
    }
    let Some(mut tracked) = tracked(context, live, new, managers, known) else { return Tracked::default() };
    if is_given {
        let list = tracked.json.as_deref().and_then(|json| serde_json::from_str(json).ok());
        tracked.errors = validate_managed_fields(&list.unwrap_or_default());
    }
    tracked
}

/// The managers that the client sent, if they are valid, not empty and not too many.
fn given(sent: Option<&Value>) -> Option<Managers<'_>> {
    const SENT_MAX: usize = 1000;
    let sent = sent.filter(|sent| sent.as_array().is_some_and(|entries| entries.len() <= SENT_MAX));
    Managers::decode(sent).ok().filter(|managers| !managers.is_empty())
}

/// An empty list, or a list with one empty entry, removes all managers.
fn is_reset(sent: Option<&Value>) -> bool {
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}

fn tracked(
    context: &WriteContext<'_>,
    live: Option<&Object>,
    new: &Object,
    managers: Managers<'_>,
    known: Option<&Value>,
) -> Option<Tracked> {
    let version = context.version()?;
    let old = live.map_or(Cow::Borrowed(version.empty), |live| version.view(live));
    let new = version.view(new);
    let mut managers = update(context, version, &old, &new, managers)?;
    managers.cap();
    managers.sort();
    Some(finish(&managers, known, Some(context.now)))
}

/// Gives the manager of the write the fields that differ between two states, and takes them from all other managers.
/// `None` if the states cannot be compared.
pub(super) fn update<'a>(
    context: &WriteContext<'a>,
    version: Version<'a>,
    old: &'a Object,
    new: &'a Object,
    mut managers: Managers<'a>,
) -> Option<Managers<'a>> {
    reconcile(context, &mut managers).ok()?;
    let views = views(context, version, old, new, &managers);
    let changes = Changes::new(context, version, old, new, &views).ok()?;
    changes.release(&mut managers, |_| false);
    let fields = stripped(changes.own.changed);
    if !fields.is_empty() {
        let mut manager = context.manager(Operation::Update, fields);
        if let Some(at) = managers.entries.iter().position(|known| known.is_same(&manager)) {
            manager.fields = manager.fields.union(managers.entries.swap_remove(at).fields);
        }
        managers.entries.push(manager);
    }
    Some(managers)
}

/// A manager uses a version that the kind does not have.
pub(super) struct UnknownVersion(pub String);

/// Reconciles the sets of managers with the present types. A manager of an unknown version owns nothing, if that is
/// allowed.
pub(super) fn reconcile(
    context: &WriteContext<'_>,
    managers: &mut Managers<'_>,
) -> Result<(), UnknownVersion> {
    let is_unknown = |manager: &&Manager<'_>| context.versions.version(&manager.api_version).is_none();
    if context.versions.must_be_known()
        && let Some(manager) = managers.entries.iter().find(is_unknown)
    {
        return Err(UnknownVersion(manager.api_version.clone().into_owned()));
    }
    managers.entries.retain_mut(|manager| {
        let Some(version) = context.versions.version(&manager.api_version) else { return false };
        manager.fields = reconciled(std::mem::take(&mut manager.fields), version.types);
        true
    });
    Ok(())
}

/// The managers as JSON, and as they were before if only times of `now` differ.
pub(super) fn finish(managers: &Managers<'_>, known: Option<&Value>, now: Option<&str>) -> Tracked {
    let json = managers.encode();
    if now.is_some_and(|now| !managers.entries.iter().any(|manager| manager.time.as_deref() == Some(now))) {
        return Tracked { json, ..Tracked::default() };
    }
    let before = Managers::decode(known).unwrap_or_default();
    let is_same = before.entries.len() == managers.entries.len()
        && before.entries.iter().zip(&managers.entries).all(|(a, b)| a.owns_the_same(b));
    let before = if is_same { before.encode() } else { None };
    Tracked { json, before, errors: Vec::new() }
}

/// Drops fields that have no owner: the identity of the object, and metadata that only the server sets.
pub(super) fn stripped(mut fields: FieldSet<'_>) -> FieldSet<'_> {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let is_one_of = |element: &Element<'_>, names: &[&str]| matches!(element, Element::Field(name) if names.contains(&&**name));
    fields.retain(|entry| {
        if is_one_of(&entry.element, &["metadata"]) {
            entry.member = false;
            entry.children.retain(|inner| {
                inner.member &= !is_one_of(&inner.element, &METADATA);
                true
            });
        } else if is_one_of(&entry.element, &["apiVersion", "kind"]) {
            entry.member = false;
        }
        true
    });
    fields
}

/// Two states of an object in another version than that of the request.
pub(super) struct OtherVersion<'a> {
    api_version: String,
    version: Version<'a>,
    old: Cow<'a, Object>,
    new: Cow<'a, Object>,
}

/// Two states of an object in every other version that managers use.
pub(super) fn views<'a>(
    context: &WriteContext<'a>,
    version: Version<'a>,
    old: &'a Object,
    new: &'a Object,
    managers: &Managers<'_>,
) -> Vec<OtherVersion<'a>> {
    let mut views: Vec<OtherVersion<'a>> = Vec::new();
    for manager in &managers.entries {
        let name = &*manager.api_version;
        if name == context.api_version || views.iter().any(|known| known.api_version == name) {
            continue;
        }
        let Some(other) = context.versions.version(name) else { continue };
        let view = |object| version.convert(Cow::Borrowed(object), &other);
        views.push(OtherVersion {
            api_version: name.to_owned(),
            version: other,
            old: view(old),
            new: view(new),
        });
    }
    views
}

/// The fields that differ between two states of an object, in each version.
pub(super) struct Changes<'a, 'v> {
    pub own: Comparison<'a>,
    api_version: &'a str,
    others: Vec<(&'v str, Comparison<'v>)>,
}

impl<'a, 'v> Changes<'a, 'v> {
    pub fn new(
        context: &WriteContext<'a>,
        version: Version<'a>,
        old: &'a Object,
        new: &'a Object,
        views: &'v [OtherVersion<'v>],
    ) -> Result<Self, String> {
        let own = filtered(context.reset, compare(version.types, old, new)?);
        let other = |view: &'v OtherVersion<'v>| {
            let comparison = compare(view.version.types, &view.old, &view.new)?;
            Ok((view.api_version.as_str(), filtered(context.reset, comparison)))
        };
        let others = views.iter().map(other).collect::<Result<_, String>>()?;
        Ok(Self { own, api_version: context.api_version, others })
    }

    fn of(&self, api_version: &str) -> Option<(&FieldSet<'_>, &FieldSet<'_>)> {
        if api_version == self.api_version {
            return Some((&self.own.changed, &self.own.removed));
        }
        let other = self.others.iter().find(|(name, _)| *name == api_version);
        other.map(|(_, comparison)| (&comparison.changed, &comparison.removed))
    }

    /// Takes changed and removed fields from managers. A manager without fields is removed.
    pub fn release(&self, managers: &mut Managers<'_>, is_exempt: impl Fn(&Manager<'_>) -> bool) {
        managers.entries.retain_mut(|manager| {
            if let Some((changed, removed)) = self.of(&manager.api_version).filter(|_| !is_exempt(manager)) {
                let fields = std::mem::take(&mut manager.fields);
                manager.fields = fields.difference(changed).difference(removed);
            }
            !manager.fields.is_empty()
        });
    }

    /// The changed fields that other managers own.
    pub fn conflicts(
        &self,
        managers: &Managers<'_>,
        is_exempt: impl Fn(&Manager<'_>) -> bool,
    ) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for manager in managers.entries.iter().filter(|manager| !is_exempt(manager)) {
            let Some((changed, _)) = self.of(&manager.api_version) else { continue };
            let common = manager.fields.clone().intersection(changed);
            conflicts.extend(common.paths().iter().map(|path| Conflict::new(manager, path)));
        }
        conflicts
    }
}

fn filtered(reset: Reset, comparison: Comparison<'_>) -> Comparison<'_> {
    Comparison { removed: reset.filter(comparison.removed), changed: reset.filter(comparison.changed) }
}
