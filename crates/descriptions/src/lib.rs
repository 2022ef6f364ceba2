//! Descriptions of Kubernetes' types and fields, as `kubectl explain` and OpenAPI documents show them.
//!
//! The build script takes them from `k8s-openapi` and compresses them. Callers unpack them and drop them
//! after use, because the unpacked text takes a megabyte.

use std::collections::HashMap;
use std::ops::Range;

/// All descriptions, unpacked: one text, and the range of each type in it.
pub struct Descriptions {
    text: String,
    types: HashMap<String, Range<usize>>,
}

impl Descriptions {
    /// Unpacks the descriptions, which takes some milliseconds and a megabyte.
    pub fn unpack() -> Self {
        let packed = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions"));
        let text = miniz_oxide::inflate::decompress_to_vec(packed).expect("the build packed it");
        Self::of(String::from_utf8(text).expect("the build wrote text"))
    }

    fn of(text: String) -> Self {
        let mut types: HashMap<String, Range<usize>> = HashMap::new();
        let mut of = "";
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let end = at + line.len();
            if line.starts_with(' ') {
                if let Some(lines) = types.get_mut(of) {
                    lines.end = end;
                }
            } else if let Some((name, _)) = line.split_once('\t') {
                types.insert(name.to_owned(), at..end);
                of = name;
            }
            at = end;
        }
        Self { text, types }
    }

    /// The description of a type, by its OpenAPI name such as `io.k8s.api.core.v1.Pod`.
    pub fn of_type(&self, name: &str) -> Option<String> {
        let mut lines = self.lines_of(name);
        described(lines.next()?.strip_prefix(name)?)
    }

    /// The description of a field of a type.
    pub fn of_field(&self, of: &str, field: &str) -> Option<String> {
        let mut lines = self.lines_of(of).filter_map(|line| line.strip_prefix(' ')?.strip_prefix(field));
        described(lines.find(|rest| rest.starts_with('\t'))?)
    }

    fn lines_of(&self, name: &str) -> impl Iterator<Item = &str> {
        let lines = self.types.get(name).cloned().unwrap_or_default();
        self.text[lines].lines()
    }
}

/// The text behind the tab, or `None` if it is empty.
fn described(rest: &str) -> Option<String> {
    rest.strip_prefix('\t').filter(|text| !text.is_empty()).map(unescape)
}

/// Reverts the escapes of the build script: `\n` for a line break, `\\` for a backslash.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.push(match character {
            '\\' if characters.next() == Some('n') => '\n',
            other => other,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_fields_are_described() {
        let descriptions = Descriptions::unpack();
        let of_field = |of, field| descriptions.of_field(of, field).unwrap_or_default();
        assert!(
            descriptions.of_type("io.k8s.api.core.v1.Pod").is_some_and(|text| text.contains("containers"))
        );
        assert!(of_field("io.k8s.api.core.v1.PodSpec", "nodeName").contains("node"));
        assert!(of_field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "uid").contains("UID"));
        assert_eq!(descriptions.of_type("io.k8s.api.core.v1.Nothing"), None);
    }

    #[test]
    fn a_field_is_that_of_its_type_and_of_its_whole_name() {
        let text = "a.A\tAn A.\n name\tOf A.\n names\tThem.\na.B\t\n name\tOf B.\n other\t\n";
        let descriptions = Descriptions::of(text.to_owned());
        let of_field = |of, field| descriptions.of_field(of, field);
        assert_eq!(descriptions.of_type("a.A").as_deref(), Some("An A."));
        assert_eq!(descriptions.of_type("a.B"), None);
        assert_eq!(of_field("a.A", "name").as_deref(), Some("Of A."));
        assert_eq!(of_field("a.A", "names").as_deref(), Some("Them."));
        assert_eq!(of_field("a.B", "name").as_deref(), Some("Of B."));
        assert_eq!(
            [of_field("a.B", "other"), of_field("a.A", "nam"), of_field("a.C", "name")],
            [const { None }; 3]
        );
    }

    #[test]
    fn line_breaks_and_their_escapes_survive() {
        assert_eq!(unescape(r"a\nb"), "a\nb");
        assert_eq!(unescape(r"a\\nb\\"), r"a\nb\");
        assert!(Descriptions::unpack().text.contains(r"\n"), "some have line breaks");
    }
}
