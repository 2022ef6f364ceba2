//! Cron schedules: `*/5 * * jan-mar sun`, `@daily`, `@every 1h30m`.

use model::error::quote;

use super::time_zone;

/// The fields in order.
const FIELDS: [Field; 5] = [
    Field { min: 0, max: 59, names: &[] },
    Field { min: 0, max: 23, names: &[] },
    Field { min: 1, max: 31, names: &[] },
    Field {
        min: 1,
        max: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// A field: its bounds, and the names of its numbers from the minimum on.
struct Field {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

/// Validates a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if let Some(zoned) = rest.strip_prefix("TZ=").or_else(|| rest.strip_prefix("CRON_TZ=")) {
        // Go's panic message for a text without space, which Kubernetes passes on.
        const NO_SPACE: &str = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
        let (zone, after) = zoned.split_once(' ').ok_or(NO_SPACE)?;
        time_zone::load(zone).map_err(|problem| format!("provided bad location {zone}: {problem}"))?;
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return check_descriptor(rest);
    }
    let texts: Vec<&str> = rest.split_whitespace().collect();
    if texts.len() != FIELDS.len() {
        let (wanted, found) = (FIELDS.len(), texts.len());
        return Err(format!("expected exactly {wanted} fields, found {found}: [{}]", texts.join(" ")));
    }
    for (field, text) in FIELDS.iter().zip(texts) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            field.check(range)?;
        }
    }
    Ok(())
}

fn check_descriptor(descriptor: &str) -> Result<(), String> {
    if let Some(duration) = descriptor.strip_prefix("@every ") {
        return check_duration(duration)
            .map_err(|problem| format!("failed to parse duration {descriptor}: {problem}"));
    }
    if DESCRIPTORS.contains(&descriptor) {
        return Ok(());
    }
    Err(format!("unrecognized descriptor: {descriptor}"))
}

impl Field {
    /// Validates a number, or a range with an optional step.
    fn check(&self, text: &str) -> Result<(), String> {
        let parts: Vec<&str> = text.split('/').collect();
        let bounds: Vec<&str> = parts[0].split('-').collect();
        let (start, mut end) = match bounds.as_slice() {
            ["*" | "?", ..] => (self.min, self.max),
            [one] => {
                let number = self.number(one)?;
                (number, number)
            }
            [first, last] => (self.number(first)?, self.number(last)?),
            // Go parses the first before it counts them.
            [first, ..] => {
                return Err(self.number(first).err().unwrap_or(format!("too many hyphens: {text}")));
            }
            [] => (self.min, self.max),
        };
        let step = match parts.as_slice() {
            [_] => 1,
            [_, step] => {
                if bounds.len() == 1 {
                    end = self.max;
                }
                number(step)?
            }
            _ => return Err(format!("too many slashes: {text}")),
        };
        if start < self.min {
            return Err(format!("beginning of range ({start}) below minimum ({}): {text}", self.min));
        }
        if end > self.max {
            return Err(format!("end of range ({end}) above maximum ({}): {text}", self.max));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
        }
        if step == 0 {
            return Err(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<u64, String> {
        let named = self.names.iter().zip(self.min..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        named.map_or_else(|| number(text), |(_, number)| Ok(number))
    }
}

fn number(text: &str) -> Result<u64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(error) => {
            let problem = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {problem}", quote(text)))
        }
    }
}

/// Validates a Go duration: `1h30m`, `-1.5s`.
fn check_duration(duration: &str) -> Result<(), String> {
    const UNITS: [&str; 8] = ["ns", "us", "\u{b5}s", "\u{3bc}s", "ms", "s", "m", "h"];
    let invalid = || format!("time: invalid duration {}", quote(duration));
    let mut rest = duration.strip_prefix(['-', '+']).unwrap_or(duration);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(rest);
        if rest[..whole].parse::<i64>().is_err() && whole > 0 {
            return Err(invalid());
        }
        let mut length = whole;
        if let Some(fraction) = rest[whole..].strip_prefix('.') {
            length += 1 + digits(fraction);
        }
        // A number has a digit before or after the point.
        if length == 0 || (whole == 0 && length == 1) {
            return Err(invalid());
        }
        rest = &rest[length..];
        let unit_length = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(unit_length);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(duration)));
        }
        if !UNITS.contains(&unit) {
            return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(duration)));
        }
        rest = after;
    }
    Ok(())
}
