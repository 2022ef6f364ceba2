//! Front proxies, which authenticate users and name them in headers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;

use super::Identity;

/// The headers in which front proxies name the user, case-insensitive. Without user headers nothing is trusted.
#[derive(Clone, Debug, Default)]
pub struct ProxyHeaders {
    /// Headers with the user name; the first present one counts.
    pub users: Vec<String>,
    /// Headers with the uid; the first present one counts.
    pub uids: Vec<String>,
    /// Headers with groups; all count.
    pub groups: Vec<String>,
    /// Prefixes of headers with extra attributes.
    pub extra_prefixes: Vec<String>,
}

impl ProxyHeaders {
    /// The usual names.
    pub fn usual() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            users: one("X-Remote-User"),
            uids: one("X-Remote-Uid"),
            groups: one("X-Remote-Group"),
            extra_prefixes: one("X-Remote-Extra-"),
        }
    }

    /// Whether a header, in lower case, belongs to the identity.
    pub(crate) fn has(&self, name: &str) -> bool {
        let mut names = self.users.iter().chain(&self.uids).chain(&self.groups);
        let mut prefixes = self.extra_prefixes.iter();
        names.any(|known| known.eq_ignore_ascii_case(name))
            || prefixes.any(|prefix| name.starts_with(&prefix.to_lowercase()))
    }

    /// The user that a proxy names; `None` without a user header.
    pub(crate) fn identity(&self, headers: &HeaderMap) -> Option<Identity> {
        let first = |names: &[String]| names.iter().flat_map(|name| values(headers, name)).next();
        let name = first(&self.users).filter(|name| !name.is_empty())?;
        let groups = self.groups.iter().flat_map(|name| values(headers, name)).map(Cow::into_owned);
        let uid = first(&self.uids).unwrap_or_default().into_owned();
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (key, value) in extras(headers, &prefix.to_lowercase()) {
                extra.entry(key).or_default().push(value.into_owned());
            }
        }
        Some(Identity { uid, extra, ..Identity::authenticated(name, groups) })
    }
}

/// All values of a header. Invalid ones must not be skipped: without a user name the request would act as the proxy.
pub(super) fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    headers.get_all(name.to_lowercase()).into_iter().map(shown)
}

/// A value as text; invalid UTF-8 is replaced, which matches no user.
fn shown(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// Keys and values of the headers with a prefix, in lower case. Keys may be percent-encoded.
pub(super) fn extras<'a>(
    headers: &'a HeaderMap,
    prefix: &str,
) -> impl Iterator<Item = (String, Cow<'a, str>)> {
    headers.iter().filter_map(move |(name, value)| {
        let key = name.as_str().strip_prefix(prefix)?;
        let decoded = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), Into::into);
        Some((decoded, shown(value)))
    })
}
