//! The options of writes: `dryRun`, `fieldValidation`, `fieldManager`, and those of a deletion.

use kinds::validation::validate_field_manager;
use model::Uid;
use model::error::{Error, FieldError};
use serde_json::{Value, json};

use super::Call;
use super::body;
use crate::request::query::Query;

/// What to do with fields that are unknown or come twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Nothing.
    Ignore,
    /// Say so in a `Warning` header.
    Warn,
    /// Refuse.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// Do everything but write.
    pub dry_run: bool,
    /// What to do with fields that are unknown or come twice.
    pub field_validation: FieldValidation,
}

impl WriteOptions {
    /// Reads and checks them; `kind` is how Kubernetes calls them in errors.
    pub fn from_query(query: &Query, kind: &str) -> Result<Self, Error> {
        Self::with(query, kind, Vec::new())
    }

    /// Those of a patch; only one that applies may be forced, and has to say who applies.
    pub fn of_patch(query: &Query, is_apply: bool) -> Result<Self, Error> {
        let mut errors = Vec::new();
        if is_apply && query.text("fieldManager").is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if !is_apply && query.has("force") {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Self::with(query, "PatchOptions", errors)
    }

    fn with(query: &Query, kind: &str, mut errors: Vec<FieldError>) -> Result<Self, Error> {
        errors.extend(validate_field_manager(query.text("fieldManager"), "fieldManager"));
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", json!(other), &supported));
                FieldValidation::Strict
            }
        };
        refuse(kind, errors)?;
        Ok(Self { dry_run, field_validation })
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go later. Also when nothing is said.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// Options of delete and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Do everything but delete.
    pub dry_run: bool,
    /// For how long the object goes on, in seconds; `None`: as long as its kind says.
    pub grace: Option<i64>,
    /// What happens to dependents; `None`: as the finalizers of the object say.
    pub propagation: Option<Propagation>,
    /// Only if the object has this uid.
    pub uid: Option<Uid>,
    /// Only if the object has this revision, as a text: one that is none never fits.
    pub revision: Option<String>,
    /// All of them, as the client gave them.
    pub given: Value,
    /// Whether the type itself ends: nobody is asked about its objects then.
    pub is_end_of_type: bool,
}

impl DeleteOptions {
    /// Reads them from the body or, where there is none, from the query.
    pub fn read(call: &Call) -> Result<Self, Error> {
        let given = if call.body.is_empty() { from_query(&call.query)? } else { body::delete_options(call)? };
        Self::from_value(given)
    }

    /// Whether any object under the name will do.
    pub fn is_unconditional(&self) -> bool {
        self.uid.is_none() && self.revision.is_none()
    }

    /// Reads them as they stand in a body.
    pub fn from_value(given: Value) -> Result<Self, Error> {
        let mut errors = Vec::new();
        let list = given.get("dryRun").and_then(Value::as_array);
        let dry_run = dry_run(list.into_iter().flatten().filter_map(Value::as_str), &mut errors);
        let orphan = given.get("orphanDependents").and_then(Value::as_bool);
        let policy = given.get("propagationPolicy").and_then(Value::as_str);
        let propagation = match policy {
            None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", json!(other), &supported));
                None
            }
        };
        if let (Some(policy), Some(_)) = (policy, orphan) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", json!(policy), detail));
        }
        refuse("DeleteOptions", errors)?;
        let preconditions = given.get("preconditions");
        let precondition = |key| preconditions.and_then(|all| all.get(key)).and_then(Value::as_str);
        let revision = precondition("resourceVersion").map(str::to_owned);
        let uid = precondition("uid").map(|uid| Uid(uid.to_owned()));
        let grace = given.get("gracePeriodSeconds").and_then(Value::as_i64);
        Ok(Self { dry_run, grace, propagation, uid, revision, given, ..Self::default() })
    }
}

fn from_query(query: &Query) -> Result<Value, Error> {
    let mut options = json!({});
    if let Some(seconds) = query.number("gracePeriodSeconds")? {
        options["gracePeriodSeconds"] = seconds.into();
    }
    if query.has("dryRun") {
        options["dryRun"] = query.all("dryRun").collect();
    }
    if query.has("propagationPolicy") {
        options["propagationPolicy"] = query.text("propagationPolicy").into();
    }
    if let Some(orphan) = query.optional_flag("orphanDependents") {
        options["orphanDependents"] = orphan.into();
    }
    Ok(options)
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|value| *value != "All") {
        errors.push(FieldError::not_supported("dryRun", json!(values), &["All"]));
    }
    !values.is_empty()
}

fn refuse(kind: &str, errors: Vec<FieldError>) -> Result<(), Error> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid {
        group: "meta.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: String::new(),
        errors,
    })
}
