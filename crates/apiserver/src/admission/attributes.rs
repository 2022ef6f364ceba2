//! One write, as plugins see it.

use std::any::Any;
use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kinds::apply::{Managers, Tracked};
use kinds::audit::Level;
use kinds::validation::validate_managed_fields;
use model::error::Error;
use model::{ObjectKey, Resource};
use serde_json::{Value, json};
use store::{Stored, Write};

use super::chain::PluginChain;
use super::{AdmissionTarget, Operation};
use crate::registry::{Object, Served};
use crate::verbs::{Call, metadata_mut, store_error, text};

/// What a client asked for beside the object.
#[derive(Clone, Copy)]
pub(crate) enum Options<'a> {
    /// Those in the query of a create, an update or a patch.
    Query,
    /// Those of a deletion.
    Delete(&'a Value),
}

/// One write, as plugins see it.
pub(crate) struct AdmissionAttributes<'a> {
    pub call: &'a Call,
    /// The type of the object, which differs from that of the path where a part is written: a scale, an eviction.
    pub shown: &'a Served,
    pub operation: Operation,
    /// As far as it is known: a name that is generated is not.
    pub name: &'a str,
    /// As it is stored, where it is changed or deleted. Who manages the fields of one that is deleted may be missing:
    /// [`AdmissionAttributes::whole_old`] has it.
    pub old: Option<&'a Object>,
    /// What it is read from, if something of it may be missing.
    unmanaged: Option<&'a Stored>,
    pub options: Options<'a>,
    pub dry_run: bool,
    /// Who owns the fields of the object, as JSON.
    managers: Option<&'a str>,
    plugins: &'a PluginChain,
    state: Mutex<State>,
}

/// What plugins say beside yes and no.
#[derive(Default)]
struct State {
    /// What is written with the object, or not at all.
    writes: Vec<Write>,
    /// What is kept until it is written.
    held: Vec<Box<dyn Any + Send>>,
    /// Whether the object was changed by somebody whom others do not expect.
    is_changed: bool,
    /// Whether plugins are asked once more.
    is_again: bool,
    /// Webhooks that want to be asked once more, if it comes to that.
    called: Vec<String>,
    /// Those of them that are.
    recalled: Vec<String>,
    /// What the webhooks left.
    outcome: Option<Object>,
    /// What a webhook made of the managers.
    managers: Option<Value>,
}

impl<'a> AdmissionAttributes<'a> {
    /// A new object of the type of the path.
    pub fn create(call: &'a Call, name: &'a str, dry_run: bool) -> Self {
        Self::new(call, Operation::Create, name, dry_run)
    }

    /// A change of an object.
    pub fn update(call: &'a Call, old: &'a Object, dry_run: bool) -> Self {
        Self { old: Some(old), ..Self::new(call, Operation::Update, &call.path.name, dry_run) }
    }

    /// The end of an object.
    pub fn delete(
        call: &'a Call,
        name: &'a str,
        stored: &'a Stored,
        old: &'a Object,
        given: &'a Value,
        dry_run: bool,
    ) -> Self {
        let (options, unmanaged) = (Options::Delete(given), Some(stored));
        Self { old: Some(old), unmanaged, options, ..Self::new(call, Operation::Delete, name, dry_run) }
    }

    /// A connection to what the path names; the object is what was asked for in the query.
    pub fn connect(call: &'a Call) -> Self {
        Self::new(call, Operation::Connect, &call.path.name, false)
    }

    fn new(call: &'a Call, operation: Operation, name: &'a str, dry_run: bool) -> Self {
        let shown = &*call.resource_type;
        // What the server does by itself has no path, and nobody is asked about it.
        let plugins = match call.path.resource.is_empty() {
            true => PluginChain::empty(),
            false => call.api.admission.plugins_for(shown, &call.path.subresource, operation),
        };
        let state = Mutex::default();
        let (old, unmanaged, options, managers) = (None, None, Options::Query, None);
        Self { call, shown, operation, name, old, unmanaged, options, dry_run, managers, plugins, state }
    }

    /// The same, about an object of another type that stands for a part of it.
    pub fn shown_as(self, shown: &'a Served) -> Self {
        Self { shown, ..self }
    }

    /// The same, with the managers of its fields.
    pub fn managed_by(self, managers: Option<&'a str>) -> Self {
        Self { managers, ..self }
    }

    /// All of the object that is changed or deleted, as it is stored.
    pub async fn whole_old(&self) -> Result<Option<Cow<'a, Object>>, Error> {
        Ok(match (self.unmanaged, self.old) {
            (Some(stored), Some(_)) => Some(Cow::Owned(self.call.resource_type.read(stored).await?)),
            (_, old) => old.map(Cow::Borrowed),
        })
    }

    /// Whether nobody has anything to say.
    pub fn has_no_plugins(&self) -> bool {
        self.plugins.is_empty()
    }

    /// The first phase: plugins change the object.
    pub async fn admit(&self, object: Option<&mut Object>) -> Result<(), Error> {
        self.plugins.admit(self, object).await
    }

    /// The second phase: plugins look at what will be written.
    pub async fn validate(&self, object: Option<&Object>) -> Result<(), Error> {
        self.plugins.validate(self, object).await
    }

    /// Both phases, for an object that nobody stores.
    pub async fn admit_whole(&self, object: &mut Object) -> Result<(), Error> {
        self.admit(Some(object)).await?;
        self.validate(Some(object)).await
    }

    /// What was known before there was a request.
    pub fn target(&self) -> AdmissionTarget<'_> {
        let (resource_type, operation) = (&**self.call.resource_type, self.operation);
        AdmissionTarget { resource_type, subresource: &self.call.path.subresource, operation }
    }

    /// Another object of a built-in kind, as it is stored.
    pub async fn look_up(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>, Error> {
        let key = ObjectKey::new(&Resource::new(group, plural), namespace, name);
        let found = self.call.api.store.get(&key, None).await.map_err(store_error)?;
        let unreadable = |_| Error::internal(format!("{key} cannot be read"));
        found.map(|found| serde_json::from_slice(&found.value).map_err(unreadable)).transpose()
    }

    /// A part of the path below the object; empty for the object itself.
    pub fn subresource(&self) -> &str {
        &self.call.path.subresource
    }

    /// The namespace of the object; that of a namespace is itself.
    pub fn namespace(&self) -> &str {
        if self.call.resource_type.is_namespace() { self.name } else { self.call.namespace() }
    }

    /// Tells the client something, whatever becomes of the request.
    pub fn warn(&self, warning: &str) {
        self.call.warnings.add(warning);
    }

    /// Writes this together with the object, or neither.
    pub fn write_together(&self, write: Write) {
        self.state().writes.push(write);
    }

    /// Keeps this until the object is written.
    pub fn hold(&self, guard: Box<dyn Any + Send>) {
        self.state().held.push(guard);
    }

    /// What is written with the object. Another attempt begins without it.
    pub fn take_writes(&self) -> Vec<Write> {
        std::mem::take(&mut self.state().writes)
    }

    /// Forgets what was kept for an attempt to write.
    pub fn release(&self) {
        let mut state = self.state();
        state.writes.clear();
        state.held.clear();
    }

    /// Notes that the object was changed by somebody whom the plugins before could not expect.
    pub fn note_change(&self) {
        self.state().is_changed = true;
    }

    /// Whether plugins are asked for the second time.
    pub fn is_again(&self) -> bool {
        self.state().is_again
    }

    /// Whether to ask all plugins once more; then that is the second time.
    pub fn begin_again(&self) -> bool {
        let mut state = self.state();
        let again = state.is_changed && !state.is_again;
        state.is_again = again;
        again
    }

    /// Notes that a webhook wants to be asked once more when others have changed the object.
    pub fn note_call(&self, webhook: &str) {
        self.state().called.push(webhook.to_owned());
    }

    /// Asks all webhooks once more that were asked so far and want to be.
    pub fn recall_all(&self) {
        let mut state = self.state();
        let called = std::mem::take(&mut state.called);
        state.recalled.extend(called);
    }

    /// Whether a webhook is asked once more.
    pub fn is_recalled(&self, webhook: &str) -> bool {
        self.state().recalled.iter().any(|known| known == webhook)
    }

    /// Keeps what the webhooks left of the object.
    pub fn note_outcome(&self, object: Option<&Object>) {
        self.state().outcome = object.cloned();
    }

    /// Whether the object is another one than the webhooks left.
    pub fn has_changed_since(&self, object: Option<&Object>) -> bool {
        self.state().outcome.as_ref() != object
    }

    /// Who owns the fields of the object.
    pub fn managers(&self) -> Option<Value> {
        let changed = self.state().managers.clone();
        changed.or_else(|| self.managers.and_then(|managers| serde_json::from_str(managers).ok()))
    }

    /// Takes the managers out of what a webhook made of the object.
    pub fn take_managers(&self, object: &mut Object) {
        let taken = metadata_mut(object).remove("managedFields").unwrap_or_else(|| json!([]));
        let is_list = taken.as_array().is_some_and(|entries| entries.iter().all(Value::is_object));
        if is_list && self.managers().as_ref() != Some(&taken) && self.managers().is_some() {
            self.state().managers = Some(taken);
        }
    }

    /// The managers as a webhook has changed them, with what validation says of them. Those that cannot be decoded are dropped with
    /// a warning, and the managers from before admission stay.
    pub fn changed_managers(&self) -> Option<Tracked> {
        let managers = self.state().managers.take()?;
        if let Err(problem) = Managers::decode(Some(&managers)) {
            self.warn(&format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {problem}"
            ));
            return None;
        }
        let errors = validate_managed_fields(&managers);
        let json = managers.as_array().filter(|entries| !entries.is_empty()).map(|_| managers.to_string());
        Some(Tracked { json, errors, ..Tracked::default() })
    }

    /// Whether the audit log has the request.
    pub fn is_logged(&self) -> bool {
        self.call.trail.level() > Level::None
    }

    /// Notes something in the audit log.
    pub fn annotate(&self, key: &str, value: impl FnOnce() -> String) {
        self.call.trail.annotate(key, value);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// "This is forbidden", with this reason.
    pub fn forbidden(&self, object: Option<&Object>, message: impl Into<String>) -> Error {
        Error::Forbidden {
            group: self.call.resource_type.group.clone(),
            resource: self.call.resource_type.plural.clone(),
            name: self.name_in_messages(object).to_owned(),
            message: message.into(),
        }
    }

    /// What Kubernetes calls an object that may have no name yet.
    pub fn name_in_messages<'b>(&'b self, object: Option<&'b Object>) -> &'b str {
        let given = |key| object.map_or("", |object| text(object, key));
        let names = [self.name, given("name"), given("generateName")];
        names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
    }

    /// The options of the request as an object: `CreateOptions`, `UpdateOptions` or `DeleteOptions`; a connection has none.
    pub fn options(&self) -> Value {
        if self.operation == Operation::Connect {
            return Value::Null;
        }
        let (kind, mut options) = match (self.options, self.operation) {
            (Options::Delete(given), _) => ("DeleteOptions", given.clone()),
            // A patch is an update by then.
            (Options::Query, Operation::Update) => ("UpdateOptions", json!({})),
            (Options::Query, _) => ("CreateOptions", json!({})),
        };
        if let (Options::Query, Some(options)) = (self.options, options.as_object_mut()) {
            let query = &self.call.query;
            if query.has("dryRun") {
                options.insert("dryRun".to_owned(), query.all("dryRun").collect());
            }
            for key in ["fieldManager", "fieldValidation"] {
                if !query.text(key).is_empty() {
                    options.insert(key.to_owned(), query.text(key).into());
                }
            }
        }
        options["kind"] = kind.into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        options
    }
}
