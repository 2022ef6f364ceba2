//! The attributes that selectors match: the labels of an object and the fields that its resource type
//! declares selectable.
//!
//! They are extracted once, when an object is written, and kept beside it, so that no selector ever parses an
//! object.

/// Labels and selectable fields of one version of an object, each sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    labels: Vec<(String, String)>,
    fields: Vec<(String, String)>,
}

impl Attributes {
    /// Takes labels and fields in any order. Of a duplicate key the last value counts.
    pub fn new(labels: Vec<(String, String)>, fields: Vec<(String, String)>) -> Self {
        Self { labels: sorted(labels), fields: sorted(fields) }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        find(&self.labels, key)
    }

    /// The value of a selectable field; a declared field that the object lacks has an empty value.
    pub fn field(&self, path: &str) -> Option<&str> {
        find(&self.fields, path)
    }

    /// All labels, sorted by key.
    pub fn labels(&self) -> &[(String, String)] {
        &self.labels
    }

    /// All selectable fields, sorted by path.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// Number of labels and fields.
    pub fn len(&self) -> usize {
        self.labels.len() + self.fields.len()
    }

    /// Whether there is neither a label nor a field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A compact form for the store: two counted lists of length-prefixed strings.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        for list in [&self.labels, &self.fields] {
            put_length(&mut out, list.len());
            for text in list.iter().flat_map(|(key, value)| [key, value]) {
                put_length(&mut out, text.len());
                out.extend_from_slice(text.as_bytes());
            }
        }
        out
    }

    /// The inverse of [`Attributes::to_bytes`]; `None` for malformed bytes.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let labels = take_list(&mut bytes)?;
        let fields = take_list(&mut bytes)?;
        bytes.is_empty().then_some(Self { labels, fields })
    }
}

fn sorted(mut list: Vec<(String, String)>) -> Vec<(String, String)> {
    list.reverse();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list.dedup_by(|a, b| a.0 == b.0);
    list
}

fn find<'a>(list: &'a [(String, String)], key: &str) -> Option<&'a str> {
    let at = list.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
    Some(&list[at].1)
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("a request body is far smaller than 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = take_length(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn take_list(bytes: &mut &[u8]) -> Option<Vec<(String, String)>> {
    let count = take_length(bytes)?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push((take_text(bytes)?, take_text(bytes)?));
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_give_back_the_attributes(
            labels in prop::collection::vec((".{0,8}", ".{0,8}"), 0..6),
            fields in prop::collection::vec((".{0,8}", ".{0,8}"), 0..6),
        ) {
            let attributes = Attributes::new(labels, fields);
            prop_assert_eq!(Attributes::from_bytes(&attributes.to_bytes()), Some(attributes));
        }

        #[test]
        fn foreign_bytes_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(read) = Attributes::from_bytes(&bytes) {
                prop_assert_eq!(read.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn the_last_value_of_a_key_counts() {
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        let attributes = Attributes::new(vec![pair("b", "1"), pair("a", "2"), pair("b", "3")], vec![]);
        assert_eq!(attributes.label("b"), Some("3"));
        assert_eq!(attributes.labels().len(), 2);
        assert_eq!(attributes.field("b"), None);
    }
}
