//! Warnings: `Warning` headers of successes and errors.

use std::sync::{Arc, Mutex, PoisonError};

use http::header::WARNING;
use http::{HeaderMap, HeaderValue};

/// The total length above which each warning is truncated.
const TOTAL: usize = 4096;
/// The length of a truncated warning.
const CUT: usize = 256;

/// The warnings of one request, in order, without duplicates. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<WarningList>>);

#[derive(Default)]
struct WarningList {
    texts: Vec<String>,
    /// The total length so far.
    shown: usize,
    are_cut: bool,
}

impl Warnings {
    /// Adds a warning.
    pub fn add(&self, text: impl Into<String>) {
        self.extend([text.into()]);
    }

    /// Adds warnings.
    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        let mut collected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.into_iter().for_each(|text| collected.add(text));
    }

    /// Adds the headers to a response.
    pub fn put(&self, headers: &mut HeaderMap) {
        let collected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for header in collected.texts.iter().filter_map(|text| collected.header(text)) {
            headers.append(WARNING, header);
        }
    }
}

impl WarningList {
    fn add(&mut self, text: String) {
        let is_full = self.are_cut && self.shown >= TOTAL;
        if text.is_empty() || is_full || self.texts.contains(&text) {
            return;
        }
        self.shown += self.length(&text);
        self.texts.push(text);
        if !self.are_cut && self.shown > TOTAL {
            self.are_cut = true;
            self.shown = self.texts.iter().map(|text| self.length(text)).sum();
        }
    }

    /// The length of a text after truncation.
    fn length(&self, text: &str) -> usize {
        let most = if self.are_cut { CUT } else { usize::MAX };
        text.chars().take(most).count()
    }

    /// Kubernetes drops a text with control characters.
    fn header(&self, text: &str) -> Option<HeaderValue> {
        if text.contains(char::is_control) {
            return None;
        }
        let mut quoted = String::from("299 - \"");
        for character in text.chars().take(self.length(text)) {
            if matches!(character, '"' | '\\') {
                quoted.push('\\');
            }
            quoted.push(character);
        }
        quoted.push('"');
        HeaderValue::from_bytes(quoted.as_bytes()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(texts: &[&str]) -> Vec<String> {
        let warnings = Warnings::default();
        warnings.extend(texts.iter().map(|&text| text.to_owned()));
        let mut headers = HeaderMap::new();
        warnings.put(&mut headers);
        let values = headers.get_all(WARNING).iter();
        values.map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap()).collect()
    }

    #[test]
    fn each_warning_is_sent_once_and_quoted() {
        assert_eq!(
            headers(&["b", "a \"\\ é", "", "b", "line\nfeed"]),
            ["299 - \"b\"", r#"299 - "a \"\\ é""#]
        );
    }

    #[test]
    fn many_warnings_are_truncated_then_dropped() {
        let (long, short) = ("x".repeat(4000), "y".repeat(96));
        assert_eq!(headers(&[&long, &short]).concat().len(), 4096 + 2 * 8);
        let cut = headers(&[&long, &short, "z"]);
        assert_eq!(cut.iter().map(String::len).collect::<Vec<_>>(), [256 + 8, 96 + 8, 1 + 8]);
        let many: Vec<String> = (0..40).map(|n| format!("{n:02}{long}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(headers(&many).len(), TOTAL / CUT);
    }
}
