//! Names of the time zone database.

use model::error::{FieldError, Path};

/// Every name, one per line. Only the names matter: nothing computes with zones.
const NAMES: &str = include_str!("time_zones.txt");

const PART_MAX: usize = 14;

/// Validates a time zone.
pub(super) fn check(path: &Path<'_>, zone: &str) -> Vec<FieldError> {
    let invalid = |detail: &str| FieldError::invalid(path, zone, detail);
    if zone.is_empty() {
        return vec![invalid("timeZone must be nil or non-empty string")];
    }
    if !zone.split('/').all(is_part) {
        return vec![invalid(&unknown(zone))];
    }
    let mut errors = Vec::new();
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(invalid(detail));
    }
    errors.extend(load(zone).err().map(|problem| invalid(&problem)));
    errors
}

/// Looks up a zone as Go does: an empty name is UTC and `Local` that of the machine.
pub(super) fn load(zone: &str) -> Result<(), String> {
    if matches!(zone, "" | "Local") || NAMES.lines().any(|name| name == zone) {
        return Ok(());
    }
    Err(unknown(zone))
}

fn unknown(zone: &str) -> String {
    format!("unknown time zone {zone}")
}

fn is_part(part: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    (1..=PART_MAX).contains(&part.len())
        && part.bytes().all(is_good)
        && !part.starts_with('-')
        && part != "."
        && part != ".."
}
