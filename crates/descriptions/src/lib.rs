//! What the types and fields of Kubernetes mean, in the words of the dependency that knows them: `kubectl explain` shows them.
//!
//! They are taken from `k8s-openapi` when this crate is built, and kept compressed: whoever needs them unpacks them for as long.

use std::collections::HashMap;

/// All descriptions, unpacked.
pub struct Descriptions {
    /// By type and field; the type itself has the empty field.
    texts: HashMap<(String, String), String>,
}

impl Descriptions {
    /// Unpacks them, which takes some milliseconds and a megabyte.
    pub fn unpack() -> Self {
        let packed = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions"));
        let text = miniz_oxide::inflate::decompress_to_vec(packed).expect("the build packed it");
        let text = String::from_utf8(text).expect("the build wrote text");
        let mut texts = HashMap::new();
        let mut of = "";
        for line in text.lines() {
            let Some((name, text)) = line.split_once('\t') else { continue };
            let field = name.strip_prefix(' ');
            if field.is_none() {
                of = name;
            }
            if !text.is_empty() {
                texts.insert((of.to_owned(), field.unwrap_or_default().to_owned()), unescape(text));
            }
        }
        Self { texts }
    }

    /// What a type is, by its OpenAPI name such as `io.k8s.api.core.v1.Pod`.
    pub fn of_type(&self, name: &str) -> Option<&str> {
        self.of_field(name, "")
    }

    /// What a field of a type means.
    pub fn of_field(&self, of: &str, field: &str) -> Option<&str> {
        self.texts.get(&(of.to_owned(), field.to_owned())).map(String::as_str)
    }
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\\\", "\\")
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
    fn line_breaks_survive() {
        assert_eq!(unescape(r"a\nb"), "a\nb");
        let descriptions = Descriptions::unpack();
        assert!(descriptions.texts.values().any(|text| text.contains('\n')));
    }
}
