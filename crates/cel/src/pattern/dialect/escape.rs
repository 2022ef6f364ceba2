//! Escape sequences.

use super::{Translator, push_literal, wrong};

/// The meaning of an escape sequence.
pub(super) enum Escaped {
    /// A character.
    Literal(char),
    /// A class, in the form for use inside brackets.
    Class { items: &'static str, is_negated: bool },
    /// A Unicode class in the syntax of the `regex` crate.
    Unicode(String),
}

impl Translator<'_> {
    /// Translates an escape outside of a class.
    pub(super) fn escape(&mut self, start: usize) -> Result<(), String> {
        let assertion = match self.rest.peek() {
            Some((_, 'A')) => "\\A",
            Some((_, 'z')) => "\\z",
            Some((_, 'b')) => "(?-u:\\b)",
            Some((_, 'B')) => "(?-u:\\B)",
            Some((_, 'Q')) => {
                self.rest.next();
                self.verbatim();
                return Ok(());
            }
            _ => "",
        };
        if !assertion.is_empty() {
            self.rest.next();
            self.item(assertion);
            return Ok(());
        }
        match self.escaped(start)? {
            Escaped::Literal(c) => push_literal(&mut self.out, c),
            Escaped::Class { items, is_negated: false } => self.out.push_str(&format!("[{items}]")),
            Escaped::Class { items, is_negated: true } => self.out.push_str(&format!("[^{items}]")),
            Escaped::Unicode(class) => self.out.push_str(&class),
        }
        self.is_item();
        Ok(())
    }

    /// Copies everything up to `\E` literally.
    fn verbatim(&mut self) {
        let start = self.position();
        let text = &self.pattern[start..];
        let len = text.find("\\E").unwrap_or(text.len());
        for _ in text[..len].chars().chain("\\E".chars()) {
            if let Some((index, c)) = self.rest.next()
                && index < start + len
            {
                push_literal(&mut self.out, c);
                self.is_item();
            }
        }
    }

    /// Parses an escape that stands for characters; the backslash was at `start`.
    pub(super) fn escaped(&mut self, start: usize) -> Result<Escaped, String> {
        let Some((_, c)) = self.rest.next() else {
            return Err(wrong("trailing backslash at end of expression", ""));
        };
        let class = |items, is_negated| Ok(Escaped::Class { items, is_negated });
        let literal = match c {
            'd' | 'D' => return class("0-9", c == 'D'),
            's' | 'S' => return class("\\t\\n\\f\\r ", c == 'S'),
            'w' | 'W' => return class("0-9A-Za-z_", c == 'W'),
            'p' | 'P' => return self.unicode(start).map(Escaped::Unicode),
            'a' => Some('\x07'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            'x' => self.hexadecimal(),
            '0'..='7' => self.octal(c),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
            _ => None,
        };
        literal.map(Escaped::Literal).ok_or_else(|| wrong("invalid escape sequence", self.since(start)))
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let mut digit = || self.rest.next().map(|(_, c)| c);
        let first = digit()?;
        if first != '{' {
            return char::from_u32(first.to_digit(16)? << 4 | digit()?.to_digit(16)?);
        }
        let mut code = digit()?.to_digit(16)?;
        loop {
            match digit()? {
                '}' => return char::from_u32(code),
                c => code = code << 4 | c.to_digit(16)?,
            }
            if code > u32::from(char::MAX) {
                return None;
            }
        }
    }

    /// Parses up to three octal digits; a single digit from 1 to 7 would be a back reference, which Go lacks.
    fn octal(&mut self, first: char) -> Option<char> {
        let mut digits = String::from(first);
        for _ in 0..2 {
            match self.rest.next_if(|(_, c)| ('0'..='7').contains(c)) {
                Some((_, digit)) => digits.push(digit),
                None if first != '0' && digits.len() == 1 => return None,
                None => break,
            }
        }
        char::from_u32(u32::from_str_radix(&digits, 8).ok()?)
    }

    /// Parses a class such as `\pL`, `\p{Greek}` or `\P{^Greek}`.
    fn unicode(&mut self, start: usize) -> Result<String, String> {
        let is_upper = self.since(start).ends_with('P');
        let mut name = String::new();
        match self.rest.next() {
            Some((_, '{')) => loop {
                match self.rest.next() {
                    Some((_, '}')) => break,
                    Some((_, c)) => name.push(c),
                    None => return Err(wrong("invalid character class range", self.since(start))),
                }
            },
            Some((_, c)) => name.push(c),
            None => return Err(wrong("invalid character class range", self.since(start))),
        }
        let (name, is_caret) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let class = format!("\\{}{{{name}}}", if is_upper != is_caret { 'P' } else { 'p' });
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match is_name && regex::Regex::new(&class).is_ok() {
            true => Ok(class),
            false => Err(wrong("invalid character class range", self.since(start))),
        }
    }
}
