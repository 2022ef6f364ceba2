//! Names of objects, labels and annotations, and names that the server generates.
//!
//! Each check returns the problems of a text in Kubernetes' words, and none for a good text.

pub use lexical::names::{
    annotation_key, dns1035_label, dns1123_label, dns1123_subdomain, dns1123_subdomain_underscore,
    is_dns1123_label, is_dns1123_subdomain, label_value, qualified_name, wildcard_subdomain,
    without_last_dash,
};

use crate::address;

/// Rule for the names of a resource type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Labels joined by dots: most resource types.
    Dns1123Subdomain,
    /// One label: namespaces, for example.
    Dns1123Label,
    /// One label that starts with a letter: services, for example.
    Dns1035Label,
    /// Any segment of a path: roles, for example.
    PathSegment,
    /// An IP address in canonical form.
    IpAddress,
}

impl NameRule {
    /// Checks a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Dns1123Subdomain => dns1123_subdomain(name),
            Self::Dns1123Label => dns1123_label(name),
            Self::Dns1035Label => dns1035_label(name),
            Self::PathSegment => path_segment(name),
            Self::IpAddress => address::strict_ip(name),
        }
    }

    /// Checks a `generateName`, to which characters will be appended: a dash at the end is fine.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => forbidden_in_paths(prefix),
            Self::IpAddress => address::strict_ip(prefix),
            _ => self.check(&without_last_dash(prefix)),
        }
    }
}

/// Problems of a name that has to be a segment of a path.
pub fn path_segment(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    forbidden_in_paths(value)
}

/// A name made of `base` and five random characters, of at most 63 bytes.
///
/// The alphabet has neither vowels nor characters that look like one, so that no words arise.
pub fn generated(base: &str, mut random: impl FnMut() -> u32) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    const LENGTH: usize = 63;
    const SUFFIX_LENGTH: usize = 5;
    let mut name = base[..base.floor_char_boundary(LENGTH - SUFFIX_LENGTH)].to_owned();
    name.extend((0..SUFFIX_LENGTH).map(|_| char::from(ALPHABET[random() as usize % ALPHABET.len()])));
    name
}

fn forbidden_in_paths(value: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|text| value.contains(text))
        .map(|text| format!("may not contain '{text}'"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn path_segments_hold_neither_slash_nor_percent() {
        for good in ["a", "...", "system:a", "A b", ""] {
            assert_eq!(path_segment(good), Vec::<String>::new(), "{good}");
        }
        assert_eq!(path_segment("a%/"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
    }

    #[test]
    fn a_prefix_may_end_with_a_dash() {
        let rows = [
            (NameRule::Dns1123Subdomain, "a-", true),
            (NameRule::Dns1123Subdomain, "a.-", true),
            (NameRule::Dns1123Subdomain, "-", false),
            (NameRule::Dns1123Subdomain, "A-", true),
            (NameRule::Dns1123Subdomain, "aA-", true),
            (NameRule::Dns1123Subdomain, "Aa-", false),
            (NameRule::Dns1123Label, "é-", false),
            (NameRule::Dns1035Label, "1a-", false),
            (NameRule::PathSegment, ".", true),
            (NameRule::PathSegment, "a/", false),
        ];
        for (rule, prefix, good) in rows {
            assert_eq!(rule.check_prefix(prefix).is_empty(), good, "{prefix}");
        }
    }

    proptest! {
        #[test]
        fn generated_names_are_short_and_good(base in "[a-z0-9]{1,80}", seed in any::<u32>()) {
            let mut state = seed;
            let name = generated(&base, || { state = state.wrapping_mul(1_664_525).wrapping_add(1); state >> 8 });
            prop_assert!(dns1123_label(&name).is_empty());
            prop_assert_eq!(name.len(), base.len().min(58) + 5);
            prop_assert!(name.starts_with(&base[..base.len().min(58)]));
            prop_assert!(!name[name.len() - 5..].contains(|c: char| "aeiouy013".contains(c)));
        }

        #[test]
        fn no_text_is_too_odd_to_check(text in "\\PC{0,70}") {
            let _ = path_segment(&text);
            let _ = NameRule::Dns1123Label.check_prefix(&text);
            prop_assert!(generated(&text, || 0).len() <= 63);
        }
    }
}
