//! Field paths of selectable fields and rules: `.spec.color`, `.spec.map['key']`.

use super::node::{Node, Values};

/// Resolves a path to its form in messages and its schema node. Map keys in brackets are optional.
pub fn resolve<'a>(node: &'a Node, path: &str, allows_brackets: bool) -> Result<(String, &'a Node), String> {
    let mut tokens = Tokens { rest: path };
    let (mut shown, mut node) = (String::new(), node);
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        match token {
            "." => {
                let name = tokens.next().ok_or_else(end)?;
                node = enter(node, name, &mut shown)?;
            }
            "[" if !allows_brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let key = tokens.next().ok_or_else(end)?;
                let inner = key.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {key}"))?;
                node = enter(node, &unescaped(inner)?, &mut shown)?;
                match tokens.next().ok_or_else(end)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok((shown, node))
}

/// Enters a field or a map key.
fn enter<'a>(node: &'a Node, name: &str, shown: &mut String) -> Result<&'a Node, String> {
    let invalid = || "does not refer to a valid field".to_owned();
    if !node.fields.is_empty() {
        if !shown.is_empty() {
            shown.push('.');
        }
        shown.push_str(name);
        return node.field(name).ok_or_else(invalid);
    }
    let Values::Of(values) = &node.values else { return Err(invalid()) };
    shown.push_str(&format!("[{name}]"));
    Ok(values)
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match characters.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(c @ ('\'' | '\\')) => c,
            _ => return Err("invalid string literal: invalid escape".to_owned()),
        });
    }
    Ok(out)
}

/// The tokens of a path: delimiters, quoted texts, and the text between them.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let length = match self.rest.chars().next()? {
            '.' | '[' | ']' => 1,
            '\'' => {
                let mut previous = ' ';
                let end = self.rest[1..].find(|c| {
                    let ends = c == '\'' && previous != '\\';
                    previous = c;
                    ends
                });
                end.map_or(self.rest.len(), |end| end + 2)
            }
            _ => self.rest.find(['.', '[', ']']).unwrap_or(self.rest.len()),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }
}
