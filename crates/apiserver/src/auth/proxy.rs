//! Proxies in front of the server, which have authenticated their callers and say who they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;

use super::Identity;

/// The headers in which proxies say for whom they speak, by any case. Without names for users nothing is believed.
#[derive(Clone, Debug, Default)]
pub struct ProxyHeaders {
    /// Of user names; the first that is there counts.
    pub users: Vec<String>,
    /// Of uids; the first that is there counts.
    pub uids: Vec<String>,
    /// Of groups; all count.
    pub groups: Vec<String>,
    /// What the names of headers begin with that say more.
    pub extra_prefixes: Vec<String>,
}

impl ProxyHeaders {
    /// The names that everybody uses.
    pub fn usual() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            users: one("X-Remote-User"),
            uids: one("X-Remote-Uid"),
            groups: one("X-Remote-Group"),
            extra_prefixes: one("X-Remote-Extra-"),
        }
    }

    /// Whether a header of this name, in lower case, says for whom a proxy speaks.
    pub(crate) fn has(&self, name: &str) -> bool {
        let mut names = self.users.iter().chain(&self.uids).chain(&self.groups);
        let mut prefixes = self.extra_prefixes.iter();
        names.any(|known| known.eq_ignore_ascii_case(name))
            || prefixes.any(|prefix| name.starts_with(&prefix.to_lowercase()))
    }

    /// For whom a proxy speaks; `None` where it does not say.
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

/// All values of a header. None is left out: without the name of a user the request would be that of the proxy itself.
pub(super) fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    headers.get_all(name.to_lowercase()).into_iter().map(shown)
}

/// A value as a text; what is not UTF-8 in it is nobody's name.
fn shown(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// Keys and values of the headers whose names begin so, in lower case. Keys may be percent-encoded.
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
