//! The function `'%d of %s'.format([1, 'two'])`.

use std::fmt::Write;

use lexical::quote;

use crate::{
    CallSite, Error, Library, List, Overload, Result, Type, Value,
    syntax::{Expr, ExprId, ExprKind, Literal},
};

/// The number of decimal places of a clause without precision.
const DEFAULT_PRECISION: usize = 6;
/// The maximum precision.
const MAX_PRECISION: usize = 1000;
/// The maximum nesting depth of lists and maps.
const MAX_DEPTH: usize = 100;
/// The maximum length of the result.
const MAX_BYTES: usize = 64 << 20;

/// A clause such as `%.3f`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clause {
    kind: ClauseKind,
    precision: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ClauseKind {
    Text,
    Decimal,
    Fixed,
    Scientific,
    Binary,
    Hex,
    UpperHex,
    Octal,
}

/// A piece of a format string.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    Clause(Clause),
}

/// Adds the function to the library.
pub(super) fn add(library: Library) -> Library {
    let params = [Type::String, Type::list(Type::Dyn)];
    library.function(
        "format",
        [Overload::member("string_format", params, Type::String, |_, args| {
            format(args[0].as_str()?, args[1].as_list()?).map(Value::from)
        })
        .validate(validate)],
    )
}

/// Checks a literal format string against the types of its literal arguments.
fn validate(site: &CallSite<'_>) -> Vec<(ExprId, String)> {
    let Some(ExprKind::Literal(Literal::String(text))) = site.target.map(|target| &target.kind) else {
        return Vec::new();
    };
    let [Expr { kind: ExprKind::List { items, .. }, .. }] = site.args else { return Vec::new() };
    let (mut used, mut rest) = (0, text.as_str());
    loop {
        match next_piece(rest, used < items.len(), used) {
            Err(error) => return vec![(site.id, error.to_string())],
            Ok(None) => break,
            Ok(Some((piece, behind))) => {
                if let Piece::Clause(clause) = piece {
                    if let Some(wrong) = unfit(clause, &items[used], site) {
                        let refusal = clause.refusal(site.ty(wrong).name());
                        return vec![(wrong.id, format!("error during formatting: {refusal}"))];
                    }
                    used += 1;
                }
                rest = behind;
            }
        }
    }
    let given = items.len();
    let message = format!("too many arguments supplied to string.format (expected {used}, got {given})");
    if given > used { vec![(site.id, message)] } else { Vec::new() }
}

/// The argument, or the part of a literal argument, whose type a clause does not accept.
fn unfit<'s>(clause: Clause, value: &'s Expr, site: &CallSite<'_>) -> Option<&'s Expr> {
    if !clause.takes(site.ty(value)) {
        return Some(value);
    }
    let has_parts = matches!(value.kind, ExprKind::List { .. } | ExprKind::Map(_));
    let parts = if clause.shows_parts() && has_parts { value.children() } else { Vec::new() };
    parts.into_iter().find_map(|part| unfit(clause, part, site))
}

fn format(text: &str, args: &List<'_>) -> Result<String> {
    let mut made = String::with_capacity(text.len());
    let mut used = 0;
    let mut rest = text;
    while let Some((piece, behind)) = next_piece(rest, used < args.len(), used)? {
        match piece {
            Piece::Text(text) => made.push_str(text),
            Piece::Clause(clause) => {
                let value = args.get(used).ok_or_else(|| out_of_range(used))??;
                let problem = |error: Error| Error::new(format!("error during formatting: {error}"));
                clause.write(&value, &mut made).map_err(problem)?;
                used += 1;
            }
        }
        if made.len() > MAX_BYTES {
            return Err(Error::new("text is too long"));
        }
        rest = behind;
    }
    Ok(made)
}

fn out_of_range(index: usize) -> Error {
    Error::new(format!("index {index} out of range"))
}

/// The next piece of a format string, and the rest. A clause needs an argument before it is parsed.
pub(crate) fn next_piece(text: &str, has_value: bool, index: usize) -> Result<Option<(Piece<'_>, &str)>> {
    if text.is_empty() {
        return Ok(None);
    }
    let Some(behind) = text.strip_prefix('%') else {
        let (plain, rest) = text.split_at(text.find('%').unwrap_or(text.len()));
        return Ok(Some((Piece::Text(plain), rest)));
    };
    if let Some(rest) = behind.strip_prefix('%') {
        return Ok(Some((Piece::Text("%"), rest)));
    }
    if !has_value {
        return Err(out_of_range(index));
    }
    if behind.is_empty() {
        return Err(Error::new("unexpected end of string"));
    }
    let problem = |problem: String| Error::new(format!("could not parse formatting clause: {problem}"));
    let (clause, rest) = Clause::parse(behind).map_err(problem)?;
    Ok(Some((Piece::Clause(clause), rest)))
}

impl Clause {
    fn parse(text: &str) -> std::result::Result<(Clause, &str), String> {
        let (precision, rest) = match text.strip_prefix('.') {
            None => (None, text),
            Some(rest) => {
                let len = rest.bytes().take_while(u8::is_ascii_digit).count();
                let (digits, rest) = rest.split_at(len);
                if rest.is_empty() {
                    return Err(
                        "error while parsing precision: could not find end of precision specifier".to_owned()
                    );
                }
                (Some(precision(digits)?), rest)
            }
        };
        let mut chars = rest.chars();
        let kind = match chars.next() {
            Some('s') => ClauseKind::Text,
            Some('d') => ClauseKind::Decimal,
            Some('f') => ClauseKind::Fixed,
            Some('e') => ClauseKind::Scientific,
            Some('b') => ClauseKind::Binary,
            Some('x') => ClauseKind::Hex,
            Some('X') => ClauseKind::UpperHex,
            Some('o') => ClauseKind::Octal,
            other => {
                let shown = other.map_or(String::new(), String::from);
                return Err(format!("unrecognized formatting clause \"{shown}\""));
            }
        };
        Ok((Clause { kind, precision }, chars.as_str()))
    }

    fn write(self, value: &Value<'_>, out: &mut String) -> Result<()> {
        let written = match (self.kind, value) {
            (ClauseKind::Text, _) => return write_text(value, out, 0),
            (ClauseKind::Decimal, Value::Int(number)) => write!(out, "{number}"),
            (ClauseKind::Decimal, Value::Uint(number)) => write!(out, "{number}"),
            (ClauseKind::Fixed, _) if let Some(number) = number(value) => {
                out.push_str(&fixed(number, self.precision.unwrap_or(DEFAULT_PRECISION)));
                Ok(())
            }
            (ClauseKind::Scientific, _) if let Some(number) = number(value) => {
                // The precision is used as the width, as in Kubernetes' version of the extension.
                write!(out, "{:>1$}", scientific(number), self.precision.unwrap_or(DEFAULT_PRECISION))
            }
            (ClauseKind::Binary, Value::Bool(bit)) => write!(out, "{}", u8::from(*bit)),
            (ClauseKind::Binary, Value::Int(number)) => {
                write!(out, "{}{:b}", sign(*number), number.unsigned_abs())
            }
            (ClauseKind::Binary, Value::Uint(number)) => write!(out, "{number:b}"),
            (ClauseKind::Octal, Value::Int(number)) => {
                write!(out, "{}{:o}", sign(*number), number.unsigned_abs())
            }
            (ClauseKind::Octal, Value::Uint(number)) => write!(out, "{number:o}"),
            (ClauseKind::Hex | ClauseKind::UpperHex, _) if let Some(hex) = hex(value) => {
                out.push_str(&if self.kind == ClauseKind::UpperHex { hex.to_uppercase() } else { hex });
                Ok(())
            }
            _ => return Err(Error::new(self.refusal(value.ty().name()))),
        };
        written.map_err(|_| Error::new("cannot be written"))
    }

    /// The error for an argument of a type that the clause does not accept.
    pub(crate) fn refusal(self, given: &str) -> String {
        let rule = match self.kind {
            ClauseKind::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                 and timestamps"
            }
            ClauseKind::Decimal => "decimal clause can only be used on integers",
            ClauseKind::Fixed => "fixed-point clause can only be used on doubles",
            ClauseKind::Scientific => "scientific clause can only be used on doubles",
            ClauseKind::Binary => "only integers and bools can be formatted as binary",
            ClauseKind::Hex | ClauseKind::UpperHex => {
                "only integers, byte buffers, and strings can be formatted as hex"
            }
            ClauseKind::Octal => "octal clause can only be used on integers",
        };
        format!("{rule}, was given {given}")
    }

    /// Whether the clause may accept an argument of a type.
    pub(crate) fn takes(self, ty: &Type) -> bool {
        use Type::{Bool, Bytes, Double, Dyn, Int, String, Uint};
        match self.kind {
            _ if matches!(ty, Dyn | Type::Error) => true,
            ClauseKind::Text => !matches!(ty, Type::Object(_) | Type::Opaque(_) | Type::Wrapper(_)),
            ClauseKind::Decimal | ClauseKind::Octal => matches!(ty, Int | Uint),
            ClauseKind::Fixed | ClauseKind::Scientific => matches!(ty, Double | String),
            ClauseKind::Binary => matches!(ty, Int | Uint | Bool),
            ClauseKind::Hex | ClauseKind::UpperHex => matches!(ty, Int | Uint | String | Bytes),
        }
    }

    /// Whether the clause formats the parts of lists and maps.
    pub(crate) fn shows_parts(self) -> bool {
        self.kind == ClauseKind::Text
    }
}

fn precision(digits: &str) -> std::result::Result<usize, String> {
    let problem =
        "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing";
    match digits.parse::<usize>() {
        Ok(precision) => Ok(precision.min(MAX_PRECISION)),
        Err(_) if digits.is_empty() => Err(format!("{problem} \"\": invalid syntax")),
        Err(_) => Err(format!("{problem} {}: value out of range", quote(digits))),
    }
}

fn sign(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

/// The argument of a clause for doubles; three special values may be strings.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// A number in fixed notation with thousands separators.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    // Zero has no sign.
    let plain = format!("{:.precision$}", if number == 0.0 { 0.0 } else { number });
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain.as_str()),
    };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::with_capacity(plain.len() + whole.len() / 3);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

/// A number in scientific notation.
fn scientific(number: f64) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    let plain = format!("{:.DEFAULT_PRECISION$e}", if number == 0.0 { 0.0 } else { number });
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ("⁻", digits),
        None => ("", exponent),
    };
    let raised = |digit: char| match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32(u32::from('⁰') + u32::from(digit) - u32::from('0')).unwrap_or(digit),
    };
    let digits: String = format!("{digits:0>2}").chars().map(raised).collect();
    format!("{mantissa}×10{sign}{digits}")
}

fn hex(value: &Value<'_>) -> Option<String> {
    let of = |bytes: &[u8]| bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    match value {
        Value::String(text) => Some(of(text.as_bytes())),
        Value::Bytes(bytes) => Some(of(bytes)),
        Value::Int(number) => Some(format!("{}{:x}", sign(*number), number.unsigned_abs())),
        Value::Uint(number) => Some(format!("{number:x}")),
        _ => None,
    }
}

/// Formats a value for `%s`.
fn write_text(value: &Value<'_>, out: &mut String, depth: usize) -> Result<()> {
    match value {
        Value::List(list) => write_list(list, out, depth),
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries()? {
                let mut pair = String::new();
                write_part(&key, &mut pair, depth)?;
                pair.push(':');
                write_part(&value, &mut pair, depth)?;
                entries.push(pair);
            }
            entries.sort();
            out.push('{');
            out.push_str(&entries.join(", "));
            out.push('}');
            Ok(())
        }
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.push_str(text);
                Ok(())
            }
            Err(_) => Err(Error::new(
                "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string",
            )),
        },
        Value::Optional(_) | Value::Opaque(_) => {
            let clause = Clause { kind: ClauseKind::Text, precision: None };
            Err(Error::new(clause.refusal(value.ty().name())))
        }
        _ => write!(out, "{value}").map_err(|_| Error::new("cannot be written")),
    }
}

fn write_list(list: &List<'_>, out: &mut String, depth: usize) -> Result<()> {
    out.push('[');
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_part(&item?, out, depth)?;
        if out.len() > MAX_BYTES {
            return Err(Error::new("text is too long"));
        }
    }
    out.push(']');
    Ok(())
}

/// Formats a value inside a list or a map, as a literal of the language.
fn write_part(value: &Value<'_>, out: &mut String, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::new("value is nested too deeply"));
    }
    let literal = match value {
        Value::String(text) => quote(text),
        Value::Bytes(_) => {
            let mut text = String::new();
            write_text(value, &mut text, depth)?;
            format!("b{}", quote(&text))
        }
        Value::Timestamp(_) => format!("timestamp({})", quote(&value.to_string())),
        Value::Duration(_) => format!("duration({})", quote(&value.to_string())),
        Value::Double(number) if number.is_finite() => format!("{number:.DEFAULT_PRECISION$}"),
        Value::Double(_) => quote(&value.to_string()),
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(Error::new(format!("no formatting function for {}", value.ty().name())));
        }
        _ => return write_text(value, out, depth + 1),
    };
    out.push_str(&literal);
    Ok(())
}
