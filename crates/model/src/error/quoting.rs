//! Values within messages, written as Go writes them: clients compare whole messages.

use lexical::quote;
use serde_json::{Number, Value};

/// A value as it stands in a field error: texts as by [`quote`], numbers plain, lists and objects as JSON.
pub(super) fn display(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => display_number(number),
        // Go escapes these characters in JSON, against HTML injection; they occur only within texts.
        other => other.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"),
    }
}

/// Go writes a floating point number with as few digits as identify it, with an exponent only at the extremes.
pub fn display_number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e6).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    float.to_string()
}
