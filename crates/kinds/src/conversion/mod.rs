//! Conversion between the stored version of a kind and its other served versions.
//!
//! Most versions have the same fields as the stored one and need no conversion: their bytes are those that are stored.

mod autoscaler;
mod event;
#[cfg(test)]
mod tests;

use model::Object;

/// The conversion of one version from and to the stored one.
#[derive(Debug)]
pub struct Conversion {
    /// Converts an object of this version to the stored one.
    pub to_stored: fn(&mut Object),
    /// Converts a stored object to this version.
    pub from_stored: fn(&mut Object),
    /// The fields that selectors of this version may name, with their stored names; empty if the names are the same.
    pub fields: &'static [(&'static str, &'static str)],
}

impl Conversion {
    /// The stored name of a field in a selector.
    ///
    /// # Errors
    /// The message for a field that selectors of this version do not support.
    pub fn stored_field<'a>(&self, path: &'a str) -> Result<&'a str, String> {
        if self.fields.is_empty() {
            return Ok(path);
        }
        let found = self.fields.iter().find(|(name, _)| *name == path);
        found.map(|(_, stored)| *stored).ok_or_else(|| format!("field label not supported: {path}"))
    }
}

/// The conversion of a version whose fields differ from the stored ones.
pub fn conversion(group: &str, version: &str, kind: &str) -> Option<&'static Conversion> {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => Some(&autoscaler::CONVERSION),
        ("events.k8s.io", "v1", "Event") => Some(&event::CONVERSION),
        _ => None,
    }
}
