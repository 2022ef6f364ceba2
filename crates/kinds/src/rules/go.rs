//! Values in messages as Go writes those types that have no names for JSON: by the names of their fields, in the order
//! in which the type declares them, with everything that is empty.

use serde_json::Value;

use super::selection::go_selector;

/// A type of Go. The names of fields are those of JSON; Go's begin with a capital.
pub enum Go {
    /// Written as it is; this text stands for one that is absent.
    Plain(&'static str),
    /// A struct.
    Struct(Fields),
    /// A struct that may be absent.
    Pointer(Fields),
    /// A list.
    List(&'static Go),
    /// A label selector, which has names for JSON.
    Selector,
}

/// The fields of a struct in their order.
pub type Fields = &'static [(&'static str, Go)];

/// What may be absent.
pub const OPTIONAL: Go = Go::Plain("null");
/// A text.
pub const TEXT: Go = Go::Plain("\"\"");
/// A number.
pub const NUMBER: Go = Go::Plain("0");

impl Go {
    /// Writes a value of this type.
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
