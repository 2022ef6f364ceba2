//! Parses a JSONPath.

use serde_json::Value;

use super::{Filter, JsonPath, JsonPathError, Segment, Slice};

/// The deepest nesting of unions and filters.
const DEPTH_MAX: usize = 16;

impl JsonPath {
    /// Parses a path such as `.status.conditions[?(@.type=="Ready")].status`.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse(text, 0)
    }
}

fn parse(text: &str, depth: usize) -> Result<JsonPath, JsonPathError> {
    if depth > DEPTH_MAX {
        return refuse("too many paths within one another");
    }
    let mut parser = Parser { rest: text, steps: Vec::new(), depth };
    while parser.step()? {}
    Ok(JsonPath { steps: parser.steps.into() })
}

fn refuse<T>(problem: impl Into<String>) -> Result<T, JsonPathError> {
    Err(JsonPathError(problem.into()))
}

struct Parser<'a> {
    rest: &'a str,
    steps: Vec<Segment>,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// Parses one segment; false at the end.
    fn step(&mut self) -> Result<bool, JsonPathError> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            return self.filter(rest);
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            return self.recursive(rest);
        }
        let Some(first) = self.rest.chars().next() else { return Ok(false) };
        match first {
            '}' => return Ok(false),
            '\r' | '\n' => return refuse("unclosed action"),
            ' ' | '@' | '$' => self.rest = &self.rest[1..],
            '[' => self.brackets()?,
            '"' | '\'' => self.quoted(first)?,
            '.' => {
                self.rest = &self.rest[1..];
                self.field();
            }
            '+' | '-' => self.number()?,
            _ if first.is_numeric() => self.number()?,
            _ if is_alphanumeric(first) => self.word(),
            _ => return refuse(format!("unrecognized character in action: U+{:04X}", u32::from(first))),
        }
        Ok(true)
    }

    /// Consumes the first `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn field(&mut self) {
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = !escaped && is_terminator(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let name = self.take(end.unwrap_or(self.rest.len()));
        self.steps.push(match name {
            "*" => Segment::Wildcard,
            name => Segment::Field(name.replace('\\', "").into()),
        });
    }

    fn recursive(&mut self, rest: &'a str) -> Result<bool, JsonPathError> {
        if self.steps.last() == Some(&Segment::Recursive) {
            return refuse("invalid multiple recursive descent");
        }
        self.rest = rest;
        self.steps.push(Segment::Recursive);
        if rest.starts_with(is_alphanumeric) {
            self.field();
        }
        Ok(true)
    }

    fn word(&mut self) {
        let word = self.take(self.rest.find(is_terminator).unwrap_or(self.rest.len()));
        self.steps.push(match word {
            "true" => Segment::Literal(true.into()),
            "false" => Segment::Literal(false.into()),
            _ => Segment::Word,
        });
    }

    fn number(&mut self) -> Result<(), JsonPathError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let end = self.rest[sign..].find(|c: char| c != '.' && !c.is_numeric());
        let text = self.take(end.map_or(self.rest.len(), |end| end + sign));
        let value = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) => Value::from(integer),
            (Err(_), Ok(float)) => Value::from(float),
            (Err(_), Err(_)) => return refuse(format!("cannot parse number {text}")),
        };
        self.steps.push(Segment::Literal(value));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), JsonPathError> {
        let mut previous = quote;
        let end = self.rest[1..].find(|c| {
            let ends = c == '\n' || (c == quote && previous != '\\');
            previous = c;
            ends
        });
        let Some(end) = end.filter(|end| self.rest[1 + end..].starts_with(quote)) else {
            return refuse("unterminated quoted string");
        };
        let text = &self.take(end + 2)[1..=end];
        self.steps.push(Segment::Literal(unescaped(text).into()));
        Ok(())
    }

    fn brackets(&mut self) -> Result<(), JsonPathError> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'));
        let Some(end) = end else { return refuse("unterminated array") };
        let inner = &self.take(end + 1)[1..end];
        if inner.contains(',') {
            let depth = self.depth + 1;
            let paths = inner.split(',').map(|part| parse(&format!("[{}]", part.trim_matches(' ')), depth));
            let paths: Vec<JsonPath> = paths.collect::<Result<_, _>>()?;
            self.steps.push(Segment::Union(paths.into()));
            return Ok(());
        }
        let key = inner.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            let steps = parse(&format!(".{key}"), self.depth + 1)?.steps;
            self.steps.extend(steps);
            return Ok(());
        }
        let slice = slice(if inner == "*" { ":" } else { inner });
        self.steps.push(Segment::Slice(
            slice.ok_or_else(|| JsonPathError(format!("invalid array index {inner}")))?,
        ));
        Ok(())
    }

    fn filter(&mut self, rest: &'a str) -> Result<bool, JsonPathError> {
        self.rest = rest;
        let Some(end) = filter_end(rest) else { return refuse("unterminated filter") };
        let text = &self.take(end + 1)[..end];
        let Some(rest) = self.rest.strip_prefix(']') else { return refuse("unclosed array expect ]") };
        self.rest = rest;
        let depth = self.depth + 1;
        let is_operator = |c: char| "!<>=".contains(c);
        let operator = text.find(is_operator).filter(|start| *start > 0).map(|start| {
            let behind = &text[start..];
            (start, start + behind.find(|c| !is_operator(c)).unwrap_or(behind.len()))
        });
        let (left, comparison) = match operator.filter(|(_, end)| *end < text.len()) {
            None => (parse(text, depth)?, None),
            Some((start, end)) => {
                let right = parse(&text[end..], depth)?;
                (parse(&text[..start], depth)?, Some((text[start..end].into(), right)))
            }
        };
        self.steps.push(Segment::Filter(Box::new(Filter { left, comparison })));
        Ok(true)
    }
}

/// The position of the parenthesis that closes a filter; quoted ones are skipped.
fn filter_end(text: &str) -> Option<usize> {
    let (mut quote, mut closed, mut previous) = (None, false, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '"' | '\'' => closed |= previous != '\\' && quote == Some(c),
            ')' if quote.is_some() == closed => return Some(at),
            _ => {}
        }
        previous = c;
    }
    None
}

/// Parses `1`, `-1`, `1:3`, `::2` and the like.
fn slice(text: &str) -> Option<Slice> {
    let mut parts = text.split(':');
    let mut number = || match parts.next() {
        None | Some("") => Some((None, false)),
        Some(part) => {
            let digits = part.strip_prefix('-').unwrap_or(part);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse().ok())?.map(|number: i64| (Some(number), true))
        }
    };
    let (start, end, step) = (number()?.0, number()?.0, number()?.0);
    let single = !text.contains(':');
    let end = if single { Some(start.unwrap_or(0).checked_add(1)?) } else { end };
    parts.next().is_none().then_some(Slice { start, end, single, step })
}

/// Unescapes a quoted text.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match if c == '\\' { characters.next() } else { None } {
            None => out.push(c),
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other) => out.push(other),
        }
    }
    out
}

fn is_terminator(c: char) -> bool {
    " \t\r\n.,[]$@{}".contains(c)
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
