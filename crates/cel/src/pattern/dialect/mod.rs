//! Translation from Go's regular expression dialect to that of the `regex` crate.
//!
//! Both are nearly the same. Go's has ASCII classes, no set operations in classes and no look-around, and
//! braces without a count are literal. Groups become non-capturing, because captures are not used.

use std::{iter::Peekable, str::CharIndices};

mod class;
mod escape;

/// The maximum repeat count.
const MAX_REPEAT: u32 = 1000;

/// Translates a pattern; errors have Kubernetes' words.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        pattern,
        rest: pattern.char_indices().peekable(),
        out: String::with_capacity(pattern.len() + 16),
        open: Vec::new(),
        last: Last::Nothing,
        repeats: Repeats::default(),
    };
    translator.run()?;
    Ok(translator.out)
}

/// The token before a repetition operator.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// Nothing to repeat.
    Nothing,
    /// A repeatable item.
    Item,
    /// A repetition that started at this byte.
    Repetition(usize),
}

/// The product of nested repeat counts.
#[derive(Clone, Copy)]
struct Repeats {
    /// Of the last item.
    item: u32,
    /// The maximum in the group so far.
    group: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Repeats { item: 1, group: 1 }
    }
}

struct Translator<'p> {
    pattern: &'p str,
    rest: Peekable<CharIndices<'p>>,
    out: String,
    /// The counts outside of each open group.
    open: Vec<Repeats>,
    last: Last,
    repeats: Repeats,
}

fn wrong(problem: &str, shown: &str) -> String {
    format!("{problem}: `{shown}`")
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), String> {
        while let Some((start, c)) = self.rest.next() {
            match c {
                '(' => self.group(start)?,
                ')' => self.close()?,
                '|' => {
                    self.out.push('|');
                    self.last = Last::Nothing;
                }
                '[' => {
                    self.class(start)?;
                    self.is_item();
                }
                '.' | '^' | '$' => self.item(c.encode_utf8(&mut [0; 4])),
                '*' | '+' | '?' => self.repetition(start, &c.to_string())?,
                '{' => match self.braces(start)? {
                    Some(count) => self.repetition(start, &count)?,
                    None => self.item("\\{"),
                },
                '\\' => self.escape(start)?,
                c => {
                    push_literal(&mut self.out, c);
                    self.is_item();
                }
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err(wrong("missing closing )", self.pattern)) }
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(before) = self.open.pop() else { return Err(wrong("unexpected )", self.pattern)) };
        let inside = self.repeats.group;
        self.item(")");
        self.repeats = Repeats { item: inside, group: before.group.max(inside) };
        Ok(())
    }

    /// The position of the next character.
    fn position(&mut self) -> usize {
        self.rest.peek().map_or(self.pattern.len(), |(index, _)| *index)
    }

    fn since(&mut self, start: usize) -> &'p str {
        &self.pattern[start..self.position()]
    }

    fn item(&mut self, text: &str) {
        self.out.push_str(text);
        self.is_item();
    }

    /// Marks the last output as repeatable.
    fn is_item(&mut self) {
        self.last = Last::Item;
        self.repeats.item = 1;
    }

    fn group(&mut self, start: usize) -> Result<(), String> {
        self.last = Last::Nothing;
        let before = std::mem::take(&mut self.repeats);
        self.open.push(before);
        let inside = &self.pattern[start + 1..];
        if !inside.starts_with('?') {
            self.out.push_str("(?:");
            return Ok(());
        }
        if inside.starts_with("?P<") || inside.starts_with("?<") {
            return self.named_group(start);
        }
        self.rest.next();
        self.out.push_str("(?");
        let (mut has_flag, mut is_negative) = (false, false);
        for (_, c) in self.rest.by_ref() {
            match c {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_negative => (is_negative, has_flag) = (true, false),
                ':' | ')' if has_flag || !is_negative => {
                    if c == ')' {
                        self.repeats = self.open.pop().unwrap_or_default();
                    }
                    // The `regex` crate rejects an empty flag group.
                    let is_bare = self.out.ends_with("(?") && c == ')';
                    match is_bare {
                        true => self.out.push_str(":)"),
                        false => self.out.push(c),
                    }
                    return Ok(());
                }
                _ => break,
            }
            self.out.push(c);
        }
        Err(wrong("invalid or unsupported Perl syntax", self.since(start)))
    }

    fn named_group(&mut self, start: usize) -> Result<(), String> {
        const PROBLEM: &str = "invalid named capture";
        let Some(end) = self.pattern[start..].find('>').map(|end| start + end) else {
            return Err(wrong(PROBLEM, &self.pattern[start..]));
        };
        let opening = &self.pattern[start..=end];
        let name = opening.trim_start_matches("(?P<").trim_start_matches("(?<").trim_end_matches('>');
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(wrong(PROBLEM, opening));
        }
        while self.rest.next_if(|(index, _)| *index <= end).is_some() {}
        self.out.push_str("(?:");
        Ok(())
    }

    /// Translates a repetition, lazy if a question mark follows.
    fn repetition(&mut self, start: usize, operator: &str) -> Result<(), String> {
        let lazy = self.rest.next_if(|(_, c)| *c == '?').map_or("", |_| "?");
        match self.last {
            Last::Nothing => {
                return Err(wrong("missing argument to repetition operator", self.since(start)));
            }
            Last::Repetition(first) => {
                return Err(wrong("invalid nested repetition operator", self.since(first)));
            }
            Last::Item => {}
        }
        self.out.push_str(operator);
        self.out.push_str(lazy);
        self.last = Last::Repetition(start);
        Ok(())
    }

    /// Parses a count in braces; `None` if the braces are literal.
    fn braces(&mut self, start: usize) -> Result<Option<String>, String> {
        let Some((inside, _)) = self.pattern[start + 1..].split_once('}') else { return Ok(None) };
        let (least, most) = match inside.split_once(',') {
            None => (count(inside), count(inside)),
            Some((least, "")) => (count(least), Some(0)),
            Some((least, most)) => (count(least), count(most)),
        };
        let (Some(least), Some(most)) = (least, most) else { return Ok(None) };
        let end = start + 1 + inside.len();
        while self.rest.next_if(|(index, _)| *index <= end).is_some() {}
        let is_open = inside.ends_with(',');
        let times = self.repeats.item.saturating_mul(least.max(most).max(1));
        if times > MAX_REPEAT || !is_open && least > most {
            return Err(wrong("invalid repeat count", &self.pattern[start..=end]));
        }
        self.repeats = Repeats { item: times, group: self.repeats.group.max(times) };
        Ok(Some(format!("{{{inside}}}")))
    }
}

/// Parses a number without leading zeros; a number that overflows exceeds the limit anyway.
fn count(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = is_number && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().unwrap_or(u32::MAX))
}

/// Writes a literal character.
fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() && !matches!(c, '<' | '>' | '_') {
        out.push('\\');
    }
    out.push(c);
}
