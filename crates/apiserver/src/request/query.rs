//! The query string: decoded parameters, and Kubernetes' formats of booleans and numbers.

use model::error::{Error, quote};
use percent_encoding::percent_decode;

/// Decoded `key=value` pairs, in the order of the query string.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query string. Invalid UTF-8 becomes replacement characters.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first value of a parameter; empty if absent.
    pub fn text(&self, key: &str) -> &str {
        self.0.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Whether the parameter is present.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    /// A flag: present and neither `false` nor `0`.
    pub fn flag(&self, key: &str) -> bool {
        self.optional_flag(key).unwrap_or(false)
    }

    /// A flag; `None` if absent.
    pub fn optional_flag(&self, key: &str) -> Option<bool> {
        self.has(key).then(|| !matches!(self.text(key).to_ascii_lowercase().as_str(), "false" | "0"))
    }

    /// A number; `None` if absent or empty.
    pub fn number(&self, key: &str) -> Result<Option<i64>, Error> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let bad = || Error::BadRequest {
            message: format!("strconv.ParseInt: parsing {}: invalid syntax", quote(text)),
        };
        text.parse().map(Some).map_err(|_| bad())
    }
}

fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode(spaced.as_bytes()).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("a=1%2C2&b&c=x+y&a=3&watch=false&w=foo&n=12");
        assert_eq!(query.text("a"), "1,2");
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1,2", "3"]);
        assert_eq!(query.text("c"), "x y");
        assert!(query.flag("b") && query.flag("w") && !query.flag("watch") && !query.flag("absent"));
        assert_eq!(query.number("n"), Ok(Some(12)));
        assert!(query.number("c").is_err());
        assert_eq!(query.number("absent"), Ok(None));
    }
}
