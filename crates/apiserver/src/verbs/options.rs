//! Options of writes: `dryRun`, `fieldValidation`, `fieldManager`, and DeleteOptions.

use kinds::validation::validate_field_manager;
use model::Uid;
use model::error::{Error, FieldError};
use serde_json::{Value, json};

use super::Call;
use super::body;
use crate::request::query::Query;

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Ignore them.
    Ignore,
    /// Send a `Warning` header.
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// Do everything except the commit.
    pub dry_run: bool,
    /// The treatment of unknown and duplicate fields.
    pub field_validation: FieldValidation,
}

impl WriteOptions {
    /// Parses the query; `kind` names the options in errors.
    pub fn from_query(query: &Query, kind: &str) -> Result<Self, Error> {
        Self::with(query, kind, Vec::new())
    }

    /// Parses the options of a patch; apply needs a field manager, and only apply may be forced.
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

/// The propagation policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted later; the default.
    Background,
    /// Dependents are deleted first.
    Foreground,
    /// Dependents are orphaned.
    Orphan,
}

/// Options of delete and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Do everything except the commit.
    pub dry_run: bool,
    /// The grace period in seconds; `None` for the default of the kind.
    pub grace: Option<i64>,
    /// The propagation policy; `None` for that of the object's finalizers.
    pub propagation: Option<Propagation>,
    /// The uid precondition.
    pub uid: Option<Uid>,
    /// The resourceVersion precondition; text that is no number never matches.
    pub revision: Option<String>,
    /// The options as the client sent them.
    pub given: Value,
    /// Whether the CRD is terminating, which skips admission.
    pub is_end_of_type: bool,
}

impl DeleteOptions {
    /// Reads the options from the body, or from the query if there is none.
    pub fn read(call: &Call) -> Result<Self, Error> {
        let given = if call.body.is_empty() { from_query(&call.query)? } else { body::delete_options(call)? };
        Self::from_value(given)
    }

    /// Whether there are no preconditions.
    pub fn is_unconditional(&self) -> bool {
        self.uid.is_none() && self.revision.is_none()
    }

    /// Parses the options of a body.
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
