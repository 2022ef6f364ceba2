//! Warnings about overlapping file paths in one volume.

use model::Object;
use model::error::quote;
use model::object::text;

use super::fields::{object, objects};

/// A path and its source.
#[derive(Clone, PartialEq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => quote(&self.path),
            source => format!("{} ({source})", quote(&self.path)),
        }
    }
}

/// Warns about overlapping paths.
pub fn overlapping_paths(warnings: &mut Vec<String>, spec: &Object) {
    for (_, volume) in objects(spec, "volumes") {
        let name = || quote(text(volume, &["name"]));
        for (field, kind, of) in [
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let Some(source) = object(volume, field) else { continue };
            for overlap in overlaps(files(source, "")) {
                let described = match of {
                    "" => kind.to_owned(),
                    of => format!("{kind} {}", quote(text(source, &[of]))),
                };
                warnings.push(format!("volume {} ({described}): overlapping paths: {overlap}", name()));
            }
        }
        let Some(projected) = object(volume, "projected") else { continue };
        let mut all = Vec::new();
        for (_, source) in objects(projected, "sources") {
            if source.is_empty() {
                warnings.push(format!("volume {} (Projected) has no sources provided", name()));
            }
            all.extend(projected_files(source));
        }
        for overlap in overlaps(all) {
            warnings.push(format!("volume {} (Projected): overlapping paths: {overlap}", name()));
        }
    }
}

fn files(source: &Object, described: &str) -> Vec<File> {
    let file = |(_, item)| File { path: text(item, &["path"]).to_owned(), source: described.to_owned() };
    objects(source, "items").map(file).collect()
}

fn projected_files(source: &Object) -> Vec<File> {
    let one = |path: &str, source: String| vec![File { path: path.to_owned(), source }];
    for (field, kind) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        if let Some(source) = object(source, field).filter(|source| source.contains_key("items")) {
            return files(source, &format!("{kind} {}", quote(text(source, &["name"]))));
        }
    }
    if let Some(source) = object(source, "downwardAPI").filter(|source| source.contains_key("items")) {
        return files(source, "DownwardAPI");
    }
    if let Some(token) = object(source, "serviceAccountToken") {
        return one(text(token, &["path"]), "ServiceAccountToken".to_owned());
    }
    Vec::new()
}

fn overlaps(files: Vec<File>) -> Vec<String> {
    let mut known: Vec<File> = Vec::new();
    let mut overlaps = Vec::new();
    for mut file in files {
        file.path.truncate(file.path.trim_end_matches('/').len());
        let within = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let others = known.iter().filter(|other| {
            !other.path.is_empty()
                && !file.path.is_empty()
                && (within(&other.path, &file.path) || within(&file.path, &other.path))
        });
        overlaps.extend(others.map(|other| format!("{} with {}", file.shown(), other.shown())));
        known.push(file);
    }
    overlaps
}
