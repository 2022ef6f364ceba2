//! Escapes field names for CEL.

use std::borrow::Cow;

use cel::syntax::is_word;

/// The escaped name of a field; `None` if CEL cannot name it.
pub(crate) fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_word(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(is_plain) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    if !name.chars().all(|c| is_plain(c) || matches!(c, '.' | '-' | '/')) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(Cow::Owned(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")))
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn field_names_that_are_not_identifiers_are_escaped() {
        for (name, escaped) in [
            ("a", Some("a")),
            ("a_b", Some("a_b")),
            ("namespace", Some("__namespace__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("é", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
