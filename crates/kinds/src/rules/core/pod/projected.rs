//! Projected volumes.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{number, text};

use super::env::check_file;
use super::fields::{Errors, file_mode, local_path, object, objects, require};
use super::volumes::check_key_item;

const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// The file paths of the sources of one volume.
struct Taken<'a> {
    volume: &'a Path<'a>,
    paths: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    fn add(&mut self, errors: &mut Errors, path: &'a str, shown: &str) {
        if !self.paths.insert(path) {
            errors.push(FieldError::invalid(self.volume, shown, "conflicting duplicate paths"));
        }
    }
}

/// Validates a projected volume.
pub fn check(errors: &mut Errors, volume: &Object, path: &Path<'_>) {
    file_mode(errors, volume, path, "defaultMode");
    let mut taken = Taken { volume: path, paths: BTreeSet::new() };
    for (index, source) in objects(volume, "sources") {
        let path = path.item("sources", index);
        for field in ["secret", "configMap"] {
            if let Some(source) = object(source, field) {
                check_keys(errors, source, &path.field(field), &mut taken);
            }
        }
        if let Some(source) = object(source, "downwardAPI") {
            let path = path.field("downwardAPI");
            for (_, file) in objects(source, "items") {
                check_file(errors, file, &path);
                take(errors, &mut taken, text(file, &["path"]));
            }
        }
        if let Some(token) = object(source, "serviceAccountToken") {
            check_token(errors, token, &path.field("serviceAccountToken"), &taken.volume.field("path"));
        }
        if source.len() > 1 {
            errors.push(FieldError::forbidden(path, "may not specify more than 1 volume type per source"));
        }
    }
}

fn take<'a>(errors: &mut Errors, taken: &mut Taken<'a>, path: &'a str) {
    if !path.is_empty() {
        taken.add(errors, path, path);
    }
}

fn check_keys<'a>(errors: &mut Errors, source: &'a Object, path: &Path<'_>, taken: &mut Taken<'a>) {
    require(errors, source, path, "name");
    for (index, item) in objects(source, "items") {
        check_key_item(errors, item, &path.item("items", index));
        let target = text(item, &["path"]);
        if !target.is_empty() {
            taken.add(errors, target, text(source, &["name"]));
        }
    }
}

fn check_token(errors: &mut Errors, token: &Object, path: &Path<'_>, target_path: &Path<'_>) {
    let seconds = number(token, &["expirationSeconds"]);
    let bounds = [
        (seconds < TOKEN_SECONDS_MIN, "may not specify a duration less than 10 minutes"),
        (seconds > TOKEN_SECONDS_MAX, "may not specify a duration larger than 2^32 seconds"),
    ];
    for (_, rule) in bounds.into_iter().filter(|(broken, _)| *broken) {
        errors.push(FieldError::invalid(path.field("expirationSeconds"), seconds, rule));
    }
    match text(token, &["path"]) {
        "" => errors.push(FieldError::required(target_path, "")),
        target => local_path(errors, target_path, target),
    }
}
