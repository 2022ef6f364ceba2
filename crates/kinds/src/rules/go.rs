//! Formats values in messages as Go formats types without JSON tags: by the names of their fields, in declaration
//! order, including empty ones.

use serde_json::Value;

use super::selection::go_selector;

/// A Go type. Field names are those of JSON; Go's begin with a capital letter.
pub enum Go {
    /// Written as it is; the text is that of an absent value.
    Plain(&'static str),
    /// A struct.
    Struct(Fields),
    /// A pointer to a struct.
    Pointer(Fields),
    /// A list.
    List(&'static Go),
    /// A label selector, which has JSON tags.
    Selector,
}

/// The fields of a struct in declaration order.
pub type Fields = &'static [(&'static str, Go)];

/// An optional value.
pub const OPTIONAL: Go = Go::Plain("null");
/// A string.
pub const TEXT: Go = Go::Plain("\"\"");
/// A number.
pub const NUMBER: Go = Go::Plain("0");

impl Go {
    /// Formats a value of this type.
    pub fn write(&self, value: Option<&Value>) -> String {
        let value = value.filter(|value| !value.is_null());
        match (self, value) {
            (Self::Plain(zero), None) => (*zero).to_owned(),
            (Self::Pointer(_) | Self::List(_), None) => "null".to_owned(),
            (Self::Plain(_), Some(value)) => {
                value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
            }
            (Self::Struct(fields) | Self::Pointer(fields), value) => {
                let fields = fields.iter().map(|(field, of)| {
                    let value = of.write(value.and_then(|value| value.get(field)));
                    format!("\"{}{}\":{value}", field[..1].to_uppercase(), &field[1..])
                });
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
            (Self::List(of), Some(items)) => {
                let items = items.as_array().into_iter().flatten().map(|item| of.write(Some(item)));
                format!("[{}]", items.collect::<Vec<_>>().join(","))
            }
            (Self::Selector, value) => go_selector(value),
        }
    }
}
