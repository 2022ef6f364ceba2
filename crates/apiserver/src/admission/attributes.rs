//! Admission attributes: one write as admission plugins see it.

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

/// The options of the request, beside its object.
#[derive(Clone, Copy)]
pub(crate) enum Options<'a> {
    /// `CreateOptions`, `UpdateOptions` or `PatchOptions` in the query.
    Query,
    /// `DeleteOptions`.
    Delete(&'a Value),
}

/// Admission attributes: one write as admission plugins see it.
pub(crate) struct AdmissionAttributes<'a> {
    pub call: &'a Call,
    /// The type of the object. It differs from the type of the path if a subresource such as scale or eviction is written.
    pub shown: &'a Served,
    pub operation: Operation,
    /// Empty if the name is still to be generated.
    pub name: &'a str,
    /// The stored object of an update or a deletion. For a deletion its managedFields may be missing: see
    /// [`AdmissionAttributes::whole_old`].
    pub old: Option<&'a Object>,
    /// The stored form of `old`, if `old` may lack managedFields.
    unmanaged: Option<&'a Stored>,
    pub options: Options<'a>,
    pub dry_run: bool,
    /// The managedFields of the object, as JSON.
    managers: Option<&'a str>,
    plugins: &'a PluginChain,
    state: Mutex<AdmissionState>,
}

/// State that plugins share while one request is admitted.
#[derive(Default)]
struct AdmissionState {
    /// Written in the same transaction as the object.
    writes: Vec<Write>,
    /// Guards that are held until the object is written.
    held: Vec<Box<dyn Any + Send>>,
    /// Whether a webhook or policy changed the object, so that earlier plugins run again.
    is_changed: bool,
    /// Whether this is the second round of mutating plugins.
    is_again: bool,
    /// Webhooks with `reinvocationPolicy: IfNeeded` that were called.
    called: Vec<String>,
    /// The webhooks that are called again in this round.
    recalled: Vec<String>,
    /// The object as the last webhook left it.
    outcome: Option<Object>,
    /// The managedFields that a webhook returned.
    managers: Option<Value>,
}

impl<'a> AdmissionAttributes<'a> {
    /// Attributes of a create.
    pub fn create(call: &'a Call, name: &'a str, dry_run: bool) -> Self {
        Self::new(call, Operation::Create, name, dry_run)
    }

    /// Attributes of an update or patch.
    pub fn update(call: &'a Call, old: &'a Object, dry_run: bool) -> Self {
        Self { old: Some(old), ..Self::new(call, Operation::Update, &call.path.name, dry_run) }
    }

    /// Attributes of a deletion.
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

    /// Attributes of a connect request; its object has the parameters of the query.
    pub fn connect(call: &'a Call) -> Self {
        Self::new(call, Operation::Connect, &call.path.name, false)
    }

    fn new(call: &'a Call, operation: Operation, name: &'a str, dry_run: bool) -> Self {
        let shown = &*call.resource_type;
        // Writes of the server itself have no path and skip admission.
        let plugins = match call.path.resource.is_empty() {
            true => PluginChain::empty(),
            false => call.api.admission.plugins_for(shown, &call.path.subresource, operation),
        };
        let state = Mutex::default();
        let (old, unmanaged, options, managers) = (None, None, Options::Query, None);
        Self { call, shown, operation, name, old, unmanaged, options, dry_run, managers, plugins, state }
    }

    /// The same attributes for a subresource object, such as a Scale.
    pub fn shown_as(self, shown: &'a Served) -> Self {
        Self { shown, ..self }
    }

    /// The same attributes with the managedFields of the object.
    pub fn managed_by(self, managers: Option<&'a str>) -> Self {
        Self { managers, ..self }
    }

    /// The stored object of an update or deletion, with managedFields.
    pub async fn whole_old(&self) -> Result<Option<Cow<'a, Object>>, Error> {
        Ok(match (self.unmanaged, self.old) {
            (Some(stored), Some(_)) => Some(Cow::Owned(self.call.resource_type.read(stored).await?)),
            (_, old) => old.map(Cow::Borrowed),
        })
    }

    /// Whether no plugin handles this request.
    pub fn has_no_plugins(&self) -> bool {
        self.plugins.is_empty()
    }

    /// Mutating phase.
    pub async fn admit(&self, object: Option<&mut Object>) -> Result<(), Error> {
        self.plugins.admit(self, object).await
    }

    /// Validating phase.
    pub async fn validate(&self, object: Option<&Object>) -> Result<(), Error> {
        self.plugins.validate(self, object).await
    }

    /// Both phases, for an object that is not stored.
    pub async fn admit_whole(&self, object: &mut Object) -> Result<(), Error> {
        self.admit(Some(object)).await?;
        self.validate(Some(object)).await
    }

    /// The resource, subresource and operation, which decide about the plugins.
    pub fn target(&self) -> AdmissionTarget<'_> {
        let (resource_type, operation) = (&**self.call.resource_type, self.operation);
        AdmissionTarget { resource_type, subresource: &self.call.path.subresource, operation }
    }

    /// Reads another stored object of a built-in kind.
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

    /// The subresource of the path; empty for the object itself.
    pub fn subresource(&self) -> &str {
        &self.call.path.subresource
    }

    /// The namespace of the object; for a Namespace its own name.
    pub fn namespace(&self) -> &str {
        if self.call.resource_type.is_namespace() { self.name } else { self.call.namespace() }
    }

    /// Adds a warning to the response.
    pub fn warn(&self, warning: &str) {
        self.call.warnings.add(warning);
    }

    /// Adds a write to the transaction of the object.
    pub fn write_together(&self, write: Write) {
        self.state().writes.push(write);
    }

    /// Holds a guard until the object is written.
    pub fn hold(&self, guard: Box<dyn Any + Send>) {
        self.state().held.push(guard);
    }

    /// Takes the writes of the transaction. A retry starts without them.
    pub fn take_writes(&self) -> Vec<Write> {
        std::mem::take(&mut self.state().writes)
    }

    /// Drops the guards and writes of one attempt.
    pub fn release(&self) {
        let mut state = self.state();
        state.writes.clear();
        state.held.clear();
    }

    /// Records that a webhook or policy changed the object.
    pub fn note_change(&self) {
        self.state().is_changed = true;
    }

    /// Whether this is the second round of mutating plugins.
    pub fn is_again(&self) -> bool {
        self.state().is_again
    }

    /// Starts the second round if the object was changed; false if there is none.
    pub fn begin_again(&self) -> bool {
        let mut state = self.state();
        let again = state.is_changed && !state.is_again;
        state.is_again = again;
        again
    }

    /// Records the call of a webhook that may be called again.
    pub fn note_call(&self, webhook: &str) {
        self.state().called.push(webhook.to_owned());
    }

    /// Marks all recorded webhooks for another call.
    pub fn recall_all(&self) {
        let mut state = self.state();
        let called = std::mem::take(&mut state.called);
        state.recalled.extend(called);
    }

    /// Whether a webhook is called again in this round.
    pub fn is_recalled(&self, webhook: &str) -> bool {
        self.state().recalled.iter().any(|known| known == webhook)
    }

    /// Records the object after the webhooks.
    pub fn note_outcome(&self, object: Option<&Object>) {
        self.state().outcome = object.cloned();
    }

    /// Whether the object differs from the recorded one.
    pub fn has_changed_since(&self, object: Option<&Object>) -> bool {
        self.state().outcome.as_ref() != object
    }

    /// The managedFields of the object.
    pub fn managers(&self) -> Option<Value> {
        let changed = self.state().managers.clone();
        changed.or_else(|| self.managers.and_then(|managers| serde_json::from_str(managers).ok()))
    }

    /// Removes the managedFields from the object that a webhook returned, and records them.
    pub fn take_managers(&self, object: &mut Object) {
        let taken = metadata_mut(object).remove("managedFields").unwrap_or_else(|| json!([]));
        let is_list = taken.as_array().is_some_and(|entries| entries.iter().all(Value::is_object));
        if is_list && self.managers().as_ref() != Some(&taken) && self.managers().is_some() {
            self.state().managers = Some(taken);
        }
    }

    /// The managedFields that a webhook returned, with their validation errors. Managers that cannot be decoded are dropped
    /// with a warning, and the managers from before admission stay.
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

    /// Whether the audit log records the request.
    pub fn is_logged(&self) -> bool {
        self.call.trail.level() > Level::None
    }

    /// Adds an audit annotation.
    pub fn annotate(&self, key: &str, value: impl FnOnce() -> String) {
        self.call.trail.annotate(key, value);
    }

    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A 403 with this message.
    pub fn forbidden(&self, object: Option<&Object>, message: impl Into<String>) -> Error {
        Error::Forbidden {
            group: self.call.resource_type.group.clone(),
            resource: self.call.resource_type.plural.clone(),
            name: self.name_in_messages(object).to_owned(),
            message: message.into(),
        }
    }

    /// The name for messages; Kubernetes has a placeholder for generated names.
    pub fn name_in_messages<'b>(&'b self, object: Option<&'b Object>) -> &'b str {
        let given = |key| object.map_or("", |object| text(object, key));
        let names = [self.name, given("name"), given("generateName")];
        names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
    }

    /// The options as an object: `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null for a connect request.
    pub fn options(&self) -> Value {
        if self.operation == Operation::Connect {
            return Value::Null;
        }
        let (kind, mut options) = match (self.options, self.operation) {
            (Options::Delete(given), _) => ("DeleteOptions", given.clone()),
            // Admission sees a patch as an update.
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
