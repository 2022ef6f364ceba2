//! What may be a name, a label or a qualified name, and names that the server makes up.
//!
//! Each check gives a list of what is wrong, in the words of Kubernetes; it is empty if nothing is.

use crate::kinds;

/// What the names of a resource type have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Labels joined by dots: most resource types.
    Dns1123Subdomain,
    /// One label: namespaces, for example.
    Dns1123Label,
    /// One label that starts with a letter: services, for example.
    Dns1035Label,
    /// Whatever can be a segment of a path: roles, for example.
    PathSegment,
    /// An IP address in its usual form.
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
            Self::IpAddress => kinds::strict_ip(name),
        }
    }

    /// Checks a `generateName`, to which characters will be appended: a dash at the end is fine.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => forbidden_in_paths(prefix),
            Self::IpAddress => kinds::strict_ip(prefix),
            // Kubernetes puts an `a` in place of the dash and of the byte before it.
            _ if prefix.ends_with('-') => match prefix.len().checked_sub(2).and_then(|end| prefix.get(..end))
            {
                Some(start) => self.check(&format!("{start}a")),
                None => self.check(prefix),
            },
            _ => self.check(prefix),
        }
    }
}

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;
const NAME_LENGTH: usize = 63;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_UNDERSCORE_PATTERN: &str =
    r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const LABEL_1035_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const NAME_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE_PATTERN: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const NAME_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                          alphanumeric character";
const NAME_EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];

/// Labels of lower case letters, digits and dashes, joined by dots; at most 253 bytes.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    subdomain(value, "characters")
}

fn subdomain(value: &str, unit: &str) -> Vec<String> {
    let mut messages = too_long(value, SUBDOMAIN_LENGTH, unit);
    if !is_subdomain(value) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                     and must start and end with an alphanumeric character";
        messages.push(mismatch(words, SUBDOMAIN_PATTERN, &["example.com"]));
    }
    messages
}

/// As [`dns1123_subdomain`], with underscores too, also at the beginning of each label.
pub fn dns1123_subdomain_underscore(value: &str) -> Vec<String> {
    let is_good = |label: &str| is_label(&label.strip_prefix('_').unwrap_or(label).replace('_', "-"));
    let mut messages = too_long(value, SUBDOMAIN_LENGTH, "characters");
    if !value.split('.').all(is_good) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or \
                     '.', and must start and end with an alphanumeric character";
        messages.push(mismatch(words, SUBDOMAIN_UNDERSCORE_PATTERN, &["example.com"]));
    }
    messages
}

/// Lower case letters, digits and dashes, no dash at the ends; at most 63 bytes.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut messages = too_long(value, LABEL_LENGTH, "characters");
    if is_label(value) {
        return messages;
    }
    messages.push(if is_subdomain(value) {
        "must not contain dots".to_owned()
    } else {
        let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                     and must start and end with an alphanumeric character";
        mismatch(words, LABEL_PATTERN, &["my-name", "123-abc"])
    });
    messages
}

/// As [`dns1123_label`], and the first character is a letter.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut messages = too_long(value, LABEL_LENGTH, "characters");
    if !(is_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                     start with an alphabetic character, and end with an alphanumeric character";
        messages.push(mismatch(words, LABEL_1035_PATTERN, &["my-name", "abc-123"]));
    }
    messages
}

/// A star in place of the first label of a subdomain.
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut messages = too_long(value, SUBDOMAIN_LENGTH, "characters");
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        let words = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                     consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        messages.push(mismatch(words, &format!(r"\*\.{SUBDOMAIN_PATTERN}"), &["*.example.com"]));
    }
    messages
}

/// The key of a label, of an annotation, of a finalizer: a name of at most 63 bytes, after a subdomain and a slash
/// or not.
pub fn qualified_name(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((prefix, name)) if !name.contains('/') => {
            let wrong = if prefix.is_empty() {
                vec!["must be non-empty".to_owned()]
            } else {
                subdomain(prefix, "bytes")
            };
            messages.extend(wrong.into_iter().map(|message| format!("prefix part {message}")));
            name
        }
        Some(_) => {
            let words = mismatch(NAME_WORDS, NAME_PATTERN, NAME_EXAMPLES);
            return vec![format!(
                "a valid label key {words} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    let mut wrong = too_long(name, NAME_LENGTH, "bytes");
    if name.is_empty() {
        wrong.push("must be non-empty".to_owned());
    }
    if !is_name(name) {
        wrong.push(mismatch(NAME_WORDS, NAME_PATTERN, NAME_EXAMPLES));
    }
    messages.extend(wrong.into_iter().map(|message| format!("name part {message}")));
    messages
}

/// The key of an annotation: as [`qualified_name`], and capital letters are fine in what stands before the slash.
pub fn annotation_key(key: &str) -> Vec<String> {
    if key.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return qualified_name(key);
    }
    qualified_name(&key.to_lowercase())
}

/// The value of a label: empty, or letters, digits, dashes, dots and underscores; at most 63 bytes.
pub fn label_value(value: &str) -> Vec<String> {
    let mut messages = too_long(value, LABEL_LENGTH, "bytes");
    if !value.is_empty() && !is_name(value) {
        let words = format!("a valid label must be an empty string or {}", &NAME_WORDS["must ".len()..]);
        messages.push(mismatch(&words, VALUE_PATTERN, &["MyValue", "my_value", "12345"]));
    }
    messages
}

/// What can be a segment of a path.
pub fn path_segment(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    forbidden_in_paths(value)
}

/// Whether [`dns1123_subdomain`] finds nothing wrong.
pub fn is_dns1123_subdomain(value: &str) -> bool {
    value.len() <= SUBDOMAIN_LENGTH && is_subdomain(value)
}

/// A name made of `base` and five random characters, of at most 63 bytes.
///
/// The alphabet has neither vowels nor what looks like one, so that no words arise.
pub fn generated(base: &str, mut random: impl FnMut() -> u32) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    const SUFFIX_LENGTH: usize = 5;
    let mut name = base[..base.floor_char_boundary(NAME_LENGTH - SUFFIX_LENGTH)].to_owned();
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

fn is_label(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !value.is_empty() && value.bytes().all(inner) && !value.starts_with('-') && !value.ends_with('-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_name(value: &str) -> bool {
    let end = |c: char| c.is_ascii_alphanumeric();
    value.starts_with(end)
        && value.ends_with(end)
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Kubernetes counts bytes always, but says so only of labels.
fn too_long(value: &str, limit: usize, unit: &str) -> Vec<String> {
    if value.len() > limit { vec![format!("must be no more than {limit} {unit}")] } else { Vec::new() }
}

/// Kubernetes' way to say that a text does not match a pattern; the two spaces are its own.
fn mismatch(words: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Messages are long; their last words tell them apart.
    fn check(rule: fn(&str) -> Vec<String>, good: &[&str], bad: &[&str]) {
        for value in good {
            assert_eq!(rule(value), Vec::<String>::new(), "{value}");
        }
        for value in bad {
            assert!(!rule(value).is_empty(), "{value}");
        }
    }

    #[test]
    fn labels_are_lower_case_letters_digits_and_dashes() {
        let long = "a".repeat(64);
        let good = ["a", "0", "a-1", "1--a", &long[1..]];
        let bad = ["", "A", "a_", "-a", "a-", "a.b", "a b", "é", "a\n", &long];
        check(dns1123_label, &good, &bad);
        check(dns1035_label, &["a", "a-1", &long[1..]], &["0", "1--a", "", "-a", "a-", "a.b", &long]);
    }

    #[test]
    fn subdomains_are_labels_joined_by_dots() {
        let long = "a".repeat(254);
        let good = ["a", "0", "a.b", "1.2.3", "a-1.b--c", &long[1..]];
        check(dns1123_subdomain, &good, &["", ".", "a.", ".a", "a..b", "A.b", "a.-b", "a_b", &long]);
        assert!(is_dns1123_subdomain("a.b") && !is_dns1123_subdomain("a..b") && !is_dns1123_subdomain(&long));
    }

    #[test]
    fn qualified_names_may_have_a_subdomain_in_front() {
        let long = "a".repeat(64);
        let good = ["a", "A_.-b", "a.b/C_d", "1/2", &long[1..]];
        let bad = ["", "/", "a/", "/a", "a/b/c", "A/b", "-a", "a-", "a b", "é", "a_b/c", &long];
        check(qualified_name, &good, &bad);
        check(annotation_key, &["a", "A.B/c", "\u{212a}.a/b"], &["", "/", "A_b/c", "é", &long]);
        check(label_value, &["", "a", "A_.-1", &long[1..]], &["-", "a-", "a/b", "a b", "é", &long]);
    }

    #[test]
    fn path_segments_hold_neither_slash_nor_percent() {
        check(path_segment, &["a", "...", "system:a", "A b", ""], &[".", "..", "a/b", "a%b"]);
        assert_eq!(path_segment("a%/"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
    }

    #[test]
    fn messages_are_those_of_kubernetes() {
        let name_part = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                         with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
                         for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let label_1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                          alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                          'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
        let key = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and \
                   end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                   validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
                   and '/' (e.g. 'example.com/MyName')";
        let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                     '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        assert_eq!(dns1123_subdomain("_"), [subdomain]);
        assert_eq!(dns1123_label("_"), [label]);
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(dns1035_label("1"), [label_1035]);
        assert_eq!(qualified_name("a/b/c"), [key]);
        assert_eq!(qualified_name("-"), [name_part]);
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("_/a"), [format!("prefix part {subdomain}")]);
        assert_eq!(qualified_name("a/"), ["name part must be non-empty", name_part]);
        assert_eq!(qualified_name(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert_eq!(label_value("-"), [value]);
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
            for rule in [dns1123_subdomain, dns1123_label, dns1035_label, qualified_name, label_value, path_segment] {
                let _ = rule(&text);
            }
            let _ = NameRule::Dns1123Label.check_prefix(&text);
            prop_assert!(generated(&text, || 0).len() <= 63);
        }
    }
}
