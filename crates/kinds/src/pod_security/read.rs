//! `PodSecurityConfiguration`: the file format of the configuration.

use std::collections::BTreeSet;

use model::Object;
use model::error::FieldError;
use model::names::{dns1123_label, dns1123_subdomain};
use model::object::{text, texts};
use serde_json::Value;

use super::configuration::{Configuration, Exemptions};
use super::standard::{Level, Policy, Standard, Version};

/// The reason why a configuration is refused.
#[derive(Debug, PartialEq)]
pub enum ConfigurationError {
    /// An unknown field, by its path.
    UnknownField(String),
    /// Invalid levels or versions, one sentence each.
    Defaults(Vec<String>),
    /// Invalid names of exemptions.
    Exemptions(Vec<FieldError>),
}

impl Configuration {
    /// Parses a configuration; the defaults are privileged and latest.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn read(object: &Object) -> Result<Self, ConfigurationError> {
        let modes = ["enforce", "enforce-version", "audit", "audit-version", "warn", "warn-version"];
        known(object, "", &["apiVersion", "kind", "defaults", "exemptions"])?;
        let (defaults, exemptions) = (map_at(object, "defaults"), map_at(object, "exemptions"));
        known(defaults, "defaults.", &modes)?;
        known(exemptions, "exemptions.", &["usernames", "namespaces", "runtimeClasses"])?;
        let mut wrong = Vec::new();
        let [enforce, audit, warn] =
            ["enforce", "audit", "warn"].map(|mode| standard(defaults, mode, &mut wrong));
        if !wrong.is_empty() {
            return Err(ConfigurationError::Defaults(wrong));
        }
        let mut errors = Vec::new();
        let mut names =
            |field: &str, problems: fn(&str) -> Vec<String>| exempt(exemptions, field, problems, &mut errors);
        let exemptions = Exemptions {
            namespaces: names("namespaces", dns1123_label),
            runtime_classes: names("runtimeClasses", dns1123_subdomain),
            users: names("usernames", |name| match name {
                "" => vec!["username must not be empty".to_owned()],
                _ => Vec::new(),
            }),
        };
        if !errors.is_empty() {
            return Err(ConfigurationError::Exemptions(errors));
        }
        Ok(Self { defaults: Policy { enforce, audit, warn }, exemptions })
    }
}

fn map_at<'a>(object: &'a Object, field: &str) -> &'a Object {
    static NOTHING: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Object::new);
    object.get(field).and_then(Value::as_object).unwrap_or(&NOTHING)
}

fn known(object: &Object, path: &str, fields: &[&str]) -> Result<(), ConfigurationError> {
    match object.keys().find(|field| !fields.contains(&field.as_str())) {
        Some(field) => Err(ConfigurationError::UnknownField(format!("{path}{field}"))),
        None => Ok(()),
    }
}

fn standard(defaults: &Object, mode: &str, wrong: &mut Vec<String>) -> Standard {
    let mut standard = Standard::PRIVILEGED;
    let version = format!("{mode}-version");
    match text(defaults, &[mode]) {
        "" => {}
        level => match Level::parse(level) {
            Ok(level) => standard.level = level,
            Err(problem) => wrong.push(format!("{mode}: {problem}")),
        },
    }
    match text(defaults, &[&version]) {
        "" => {}
        given => match Version::parse(given) {
            Ok(given) => standard.version = given,
            Err(problem) => wrong.push(format!("{version}: {problem}")),
        },
    }
    standard
}

fn exempt(
    exemptions: &Object,
    field: &str,
    problems: fn(&str) -> Vec<String>,
    errors: &mut Vec<FieldError>,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (index, name) in texts(exemptions, &[field]).into_iter().enumerate() {
        let path = format!("exemptions.{field}[{index}]");
        let wrong = problems(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(path, name, wrong.join(", ")));
        } else if !names.insert(name.to_owned()) {
            errors.push(FieldError::duplicate(path, name));
        }
    }
    names
}
