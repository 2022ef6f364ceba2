//! Shared validation of this group: names, bounded lists, selectors, configurations.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain};
use model::object::{items, maps, text, value};
use serde_json::Value;

use super::expressions::bad_expression;
use crate::rules::label_selector::invalid;

const DRIVER_LENGTH_MAX: usize = 63;
const POOL_LENGTH_MAX: usize = 253;
const ID_LENGTH_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const PARAMETERS_LENGTH_MAX: usize = 10 * 1024;

/// Validates a list of maps: its length, each item, and unique names.
pub fn bad_list(
    path: &Path<'_>,
    list: &[Value],
    most: usize,
    key: Option<&str>,
    check: impl Fn(&Path<'_>, &Object) -> Vec<FieldError>,
) -> Vec<FieldError> {
    if list.len() > most {
        return vec![FieldError::too_many(path, list.len(), most)];
    }
    let maps = || list.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_object()?)));
    let mut errors: Vec<FieldError> = maps().flat_map(|(index, item)| check(&path.at(index), item)).collect();
    let mut seen = BTreeSet::new();
    for (index, item) in maps() {
        let Some(key) = key else { break };
        let name = text(item, &[key]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path.at(index), name));
        }
    }
    errors
}

/// Validates the name of a request or device.
pub fn bad_label(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    invalid(path, name, dns1123_label(name)).collect()
}

/// Validates the name of a driver.
pub fn bad_driver(path: &Path<'_>, driver: &str) -> Vec<FieldError> {
    if driver.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    if driver.len() > DRIVER_LENGTH_MAX {
        errors.push(FieldError::too_long(path, DRIVER_LENGTH_MAX));
    }
    errors.extend(invalid(path, driver, dns1123_subdomain(&driver.to_lowercase())));
    errors
}

/// Validates the name of a pool.
pub fn bad_pool(path: &Path<'_>, pool: &str) -> Vec<FieldError> {
    if pool.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    if pool.len() > POOL_LENGTH_MAX {
        errors.push(FieldError::too_long(path, POOL_LENGTH_MAX));
    }
    for part in pool.split('/') {
        errors.extend(invalid(path, part, dns1123_subdomain(part)));
    }
    errors
}

/// Validates the name of an attribute or capacity: an identifier with an optional domain and slash.
pub fn bad_qualified_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => bad_identifier(path, id),
        [domain, id] => {
            let mut errors = match *domain {
                "" => vec![FieldError::invalid(path, "", "the domain must not be empty")],
                domain => bad_driver(path, domain),
            };
            errors.extend(match *id {
                "" => vec![FieldError::invalid(path, "", "the name must not be empty")],
                id => bad_identifier(path, id),
            });
            errors
        }
        _ => Vec::new(),
    }
}

fn bad_identifier(path: &Path<'_>, id: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if id.len() > ID_LENGTH_MAX {
        errors.push(FieldError::too_long(path, ID_LENGTH_MAX));
    }
    let is_fine = id.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && id.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    if !is_fine {
        let detail = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                      alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for \
                      validation is '[A-Za-z_][A-Za-z0-9_]*')";
        errors.push(FieldError::invalid(path, id, detail));
    }
    errors
}

/// Validates device selectors.
pub fn bad_selectors(path: &Path<'_>, object: &Object) -> Vec<FieldError> {
    bad_list(path, items(object, &["selectors"]), SELECTORS_MAX, None, |path, selector| {
        match value(selector, &["cel"]).and_then(Value::as_object) {
            None => vec![FieldError::required(path.field("cel"), "")],
            Some(cel) => {
                let expression = text(cel, &["expression"]);
                bad_expression(&path.field("cel.expression"), expression).into_iter().collect()
            }
        }
    })
}

/// Validates an opaque configuration for a driver.
pub fn bad_configuration(path: &Path<'_>, configuration: &Object) -> Vec<FieldError> {
    let path = path.field("opaque");
    let Some(opaque) = value(configuration, &["opaque"]).and_then(Value::as_object) else {
        return vec![FieldError::required(path, "")];
    };
    let mut errors = bad_driver(&path.field("driver"), text(opaque, &["driver"]));
    errors.extend(bad_raw(&path.field("parameters"), opaque.get("parameters"), PARAMETERS_LENGTH_MAX));
    errors
}

/// Validates a raw map that only its driver interprets.
pub fn bad_raw(path: &Path<'_>, raw: Option<&Value>, length_max: usize) -> Option<FieldError> {
    match raw {
        None | Some(Value::Null) => Some(FieldError::required(path, "")),
        Some(raw) if raw.to_string().len() > length_max => Some(FieldError::too_long(path, length_max)),
        Some(Value::Object(_)) => None,
        Some(_) => Some(FieldError::invalid(path, "<value omitted>", "must be a valid JSON object")),
    }
}

/// The names of the requests of a claim, with those of their subrequests.
pub struct RequestNames<'a>(Vec<(&'a str, Vec<&'a str>)>);

impl<'a> RequestNames<'a> {
    /// Collects the names in the devices of a claim's spec.
    pub fn of(devices: &'a Object) -> Self {
        let names = |(_, request): (usize, &'a Object)| {
            let alternatives = maps(request, &["firstAvailable"]).map(|(_, other)| text(other, &["name"]));
            (text(request, &["name"]), alternatives.collect())
        };
        Self(maps(devices, &["requests"]).map(names).collect())
    }

    /// Validates a list of references to requests.
    pub fn bad_references(&self, path: &Path<'_>, object: &Object, most: usize) -> Vec<FieldError> {
        let list = items(object, &["requests"]);
        if list.len() > most {
            return vec![FieldError::too_many(path, list.len(), most)];
        }
        let names = || list.iter().map(|name| name.as_str().unwrap_or_default()).enumerate();
        let mut errors: Vec<FieldError> =
            names().flat_map(|(index, name)| self.bad_reference(&path.at(index), name)).collect();
        let mut seen = BTreeSet::new();
        let repeated = names().filter(|(_, name)| !seen.insert(*name));
        errors.extend(repeated.map(|(index, name)| FieldError::duplicate(path.at(index), name)));
        errors
    }

    /// Validates a reference to a request or subrequest.
    pub fn bad_reference(&self, path: &Path<'_>, name: &str) -> Vec<FieldError> {
        let (request, alternative) = match name.split_once('/') {
            Some((request, alternative)) => (request, Some(alternative)),
            None => (name, None),
        };
        let is_long = alternative.is_some_and(|alternative| alternative.contains('/'));
        let mut errors = Vec::new();
        if !is_long {
            errors.extend(std::iter::once(request).chain(alternative).flat_map(|part| bad_label(path, part)));
        }
        let known = self.0.iter().any(|(own, alternatives)| {
            *own == request && alternative.is_none_or(|alternative| alternatives.contains(&alternative))
        });
        if is_long || !known {
            let detail = "must be the name of a request in the claim or the name of a request and a subrequest \
                          separated by '/'";
            errors.push(FieldError::invalid(path, name, detail));
        }
        errors
    }
}
