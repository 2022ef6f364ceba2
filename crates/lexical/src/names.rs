//! DNS names, qualified names and label values.
//!
//! Each function returns the problems of a value in Kubernetes' words; an empty list means that the value is
//! valid.

use std::borrow::Cow;

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

/// A DNS subdomain (RFC 1123): lower case letters, digits and dashes in labels joined by dots; at most 253
/// bytes.
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

/// Like [`dns1123_subdomain`], and underscores are allowed, also at the start of a label.
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

/// A DNS label (RFC 1123): lower case letters, digits and dashes, no dash at either end; at most 63 bytes.
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

/// A DNS label (RFC 1035): as [`dns1123_label`], and the first character is a letter.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut messages = too_long(value, LABEL_LENGTH, "characters");
    if !(is_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                     start with an alphabetic character, and end with an alphanumeric character";
        messages.push(mismatch(words, LABEL_1035_PATTERN, &["my-name", "abc-123"]));
    }
    messages
}

/// A subdomain whose first label is a star, such as `*.example.com`.
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut messages = too_long(value, SUBDOMAIN_LENGTH, "characters");
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        let words = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                     consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        messages.push(mismatch(words, &format!(r"\*\.{SUBDOMAIN_PATTERN}"), &["*.example.com"]));
    }
    messages
}

/// A qualified name, such as the key of a label or a finalizer: an optional DNS subdomain and a slash, then a
/// name of at most 63 bytes.
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

/// The key of an annotation: a [`qualified_name`] whose prefix may have capital letters.
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

/// Whether the value is a valid [`dns1123_label`].
pub fn is_dns1123_label(value: &str) -> bool {
    value.len() <= LABEL_LENGTH && is_label(value)
}

/// Whether the value is a valid [`dns1123_subdomain`].
pub fn is_dns1123_subdomain(value: &str) -> bool {
    value.len() <= SUBDOMAIN_LENGTH && is_subdomain(value)
}

/// Prepares a `generateName` for validation: the server will append characters, so a trailing dash is
/// allowed.
///
/// Kubernetes replaces the dash and the byte before it by an `a`.
pub fn without_last_dash(prefix: &str) -> Cow<'_, str> {
    let Some(end) = prefix.strip_suffix('-').and_then(|rest| rest.len().checked_sub(1)) else {
        return Cow::Borrowed(prefix);
    };
    // If the cut is inside a character, the bytes that remain of it are invalid in a name but count for its
    // length.
    let start = prefix.floor_char_boundary(end);
    Cow::Owned(format!("{}{}a", &prefix[..start], "\0".repeat(end - start)))
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

/// Kubernetes counts bytes in all limits, but the message says so only for label values.
fn too_long(value: &str, limit: usize, unit: &str) -> Vec<String> {
    if value.len() > limit { vec![format!("must be no more than {limit} {unit}")] } else { Vec::new() }
}

/// Kubernetes' message for a value that does not match a pattern; the double space is Kubernetes' own.
fn mismatch(words: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks which values are valid; other tests check the messages.
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
        assert!(is_dns1123_label("a-1") && !is_dns1123_label("a.b") && !is_dns1123_label(&long));
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
    fn a_dash_at_the_end_of_a_prefix_is_replaced() {
        let rows =
            [("", ""), ("a", "a"), ("-", "-"), ("a-", "a"), ("ab-", "aa"), ("a--", "aa"), ("aé-", "a\0a")];
        for (prefix, checked) in rows {
            assert_eq!(without_last_dash(prefix), checked, "{prefix}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,70}") {
            for rule in [dns1123_subdomain, dns1123_label, dns1035_label, qualified_name, label_value] {
                let _ = rule(&text);
            }
            let prefix = format!("{text}-");
            let expected = if text.is_empty() { 1 } else { text.len() };
            prop_assert_eq!(without_last_dash(&prefix).len(), expected);
        }
    }
}
