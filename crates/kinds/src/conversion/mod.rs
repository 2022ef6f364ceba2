//! Versions of a kind that are views of one stored object: what differs between a version and the stored one.
//!
//! Most versions have the same fields as the stored one and need no conversion: their bytes are those that are stored.

mod autoscaler;
mod event;
#[cfg(test)]
mod tests;

use model::Object;

/// How one version of a kind becomes the stored one and back.
#[derive(Debug)]
pub struct Conversion {
    /// Brings an object of this version into the stored shape.
    pub to_stored: fn(&mut Object),
    /// Brings a stored object into the shape of this version.
    pub from_stored: fn(&mut Object),
    /// The fields that selectors of this version may name, with the names that they have in the stored one; empty where the
    /// names are the same.
    pub fields: &'static [(&'static str, &'static str)],
}

impl Conversion {
    /// The stored name of a field in a selector.
    ///
    /// # Errors
    /// The message for a field that selectors of this version may not name.
    pub fn stored_field<'a>(&self, path: &'a str) -> Result<&'a str, String> {
        if self.fields.is_empty() {
            return Ok(path);
        }
        let found = self.fields.iter().find(|(name, _)| *name == path);
        found.map(|(_, stored)| *stored).ok_or_else(|| format!("field label not supported: {path}"))
    }
}

/// The conversion of a version whose fields are not those of the stored one.
pub fn conversion(group: &str, version: &str, kind: &str) -> Option<&'static Conversion> {
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => Some(&autoscaler::CONVERSION),
        ("events.k8s.io", "v1", "Event") => Some(&event::CONVERSION),
        _ => None,
    }
}
