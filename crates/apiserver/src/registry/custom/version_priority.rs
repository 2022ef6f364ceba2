//! The priority of versions within a group.

use std::cmp::Ordering;

/// The stability of a version: `v1` before `v1beta1` before `v1alpha1`, higher numbers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    General,
}

/// Orders versions by priority; other names come last, alphabetically.
pub fn version_order(a: &str, b: &str) -> Ordering {
    match (read(a), read(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

fn read(version: &str) -> Option<(Stage, u64, u64)> {
    let (major, rest) = number(version.strip_prefix('v')?)?;
    if rest.is_empty() {
        return Some((Stage::General, major, 0));
    }
    let (stage, rest) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(rest), _) => (Stage::Beta, rest),
        (_, Some(rest)) => (Stage::Alpha, rest),
        _ => return None,
    };
    let (minor, rest) = number(rest)?;
    rest.is_empty().then_some((stage, major, minor))
}

fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if text.starts_with('0') {
        return None;
    }
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stable_version_comes_first() {
        let mut versions = ["foo1", "v1", "v1alpha2", "v2beta1", "v10", "v1beta2", "v2", "bar", "v1alpha10"];
        versions.sort_by(|a, b| version_order(a, b));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha10", "v1alpha2", "bar", "foo1"]
        );
    }
}
