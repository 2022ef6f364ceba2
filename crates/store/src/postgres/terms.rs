//! Labels and fields in the index: as two numbers, one for the key, one for the value.
//!
//! Numbers of a fixed size are compared several times faster than texts, and no text is too long for them.
//! Different texts may share a number: an entry of the index only finds a candidate, whose attributes are
//! then checked.

use model::Resource;
use model::selector::{Requirement, Target};

use crate::plan::{Entry, target_letter};

/// The term that a requirement is about: the first of an entry's numbers.
pub fn of_requirement(resource: &Resource, requirement: &Requirement) -> i64 {
    term(resource, requirement.target, &requirement.key)
}

/// The term of an entry.
pub fn of_entry(resource: &Resource, entry: &Entry) -> i64 {
    term(resource, entry.target, &entry.key)
}

/// The second of an entry's numbers: the value.
pub fn value(value: &str) -> i64 {
    let mut hash = Hash::default();
    hash.text(value);
    hash.finish()
}

fn term(resource: &Resource, target: Target, key: &str) -> i64 {
    let mut hash = Hash::default();
    hash.text(resource.as_str());
    hash.text(target_letter(target));
    hash.text(key);
    hash.finish()
}

/// FNV-1a. The numbers are stored, so neither the function nor its input may ever change.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Hashes a text and its end, so that neighbouring texts do not run together.
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(self) -> i64 {
        self.0.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_stored_entries_never_change() {
        let pods = Resource::new("", "pods");
        assert_eq!(term(&pods, Target::Label, "app"), -703_325_642_195_029_109);
        assert_eq!(term(&pods, Target::Field, "app"), -1_868_230_350_768_300_175);
        assert_eq!(value("web"), 4_430_570_022_538_645_962);
        assert_eq!(value(""), -5_808_391_946_409_677_970);
    }

    #[test]
    fn neighbouring_texts_do_not_run_together() {
        let of = |plural: &str, key: &str| term(&Resource::new("", plural), Target::Label, key);
        assert_ne!(of("podsl", "app"), of("pods", "lapp"));
        assert_ne!(of("pods", "app"), of("pods", "ap"));
    }
}
