//! Character classes in brackets.

use super::{Translator, escape::Escaped, push_literal, wrong};

impl Translator<'_> {
    /// Translates a class whose bracket was at `start`.
    pub(super) fn class(&mut self, start: usize) -> Result<(), String> {
        self.out.push('[');
        if self.rest.next_if(|(_, c)| *c == '^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let Some((index, c)) = self.rest.next() else {
                return Err(wrong("missing closing ]", &self.pattern[start..]));
            };
            match c {
                ']' if !is_first => break,
                '[' if self.pattern[index..].starts_with("[:") && self.named(index)? => {}
                _ => self.range(start, index, c)?,
            }
            is_first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// Translates a class such as `[:alpha:]`; false if the text only starts like one.
    fn named(&mut self, index: usize) -> Result<bool, String> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
            "space", "upper", "word", "xdigit",
        ];
        let Some(len) = self.pattern[index + 2..].find(":]") else { return Ok(false) };
        let end = index + 2 + len + 2;
        let shown = &self.pattern[index..end];
        let name = shown.trim_start_matches("[:").trim_end_matches(":]");
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(wrong("invalid character class range", shown));
        }
        self.out.push_str(shown);
        while self.rest.next_if(|(index, _)| *index < end).is_some() {}
        Ok(true)
    }

    /// Translates a character, a range, or an escaped class.
    fn range(&mut self, start: usize, index: usize, c: char) -> Result<(), String> {
        let low = match self.member(index, c)? {
            Escaped::Literal(low) => low,
            Escaped::Class { items, is_negated: false } => {
                self.out.push_str(items);
                return Ok(());
            }
            Escaped::Class { items, is_negated: true } => {
                self.out.push_str(&format!("[^{items}]"));
                return Ok(());
            }
            Escaped::Unicode(class) => {
                self.out.push_str(&class);
                return Ok(());
            }
        };
        push_literal(&mut self.out, low);
        let behind = &self.pattern[self.position()..];
        if !behind.starts_with('-') || behind.starts_with("-]") {
            return Ok(());
        }
        self.rest.next();
        let Some((high_index, high)) = self.rest.next() else {
            return Err(wrong("missing closing ]", &self.pattern[start..]));
        };
        match self.member(high_index, high)? {
            Escaped::Literal(high) if low <= high => {
                self.out.push('-');
                push_literal(&mut self.out, high);
                Ok(())
            }
            Escaped::Literal(_) => Err(wrong("invalid character class range", self.since(index))),
            _ => Err(wrong("invalid escape sequence", self.since(high_index))),
        }
    }

    fn member(&mut self, index: usize, c: char) -> Result<Escaped, String> {
        if c == '\\' { self.escaped(index) } else { Ok(Escaped::Literal(c)) }
    }
}
