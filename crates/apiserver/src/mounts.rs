//! The table of mounts: the prefixes that products serve, and the spelling of paths below them. Pure functions.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::error::{Error, quote};
use mount::Mount;
use percent_encoding::percent_decode_str;

use crate::registry::Registry;

/// First segments of the server's own paths. `/api` has its own rules.
const RESERVED: [&str; 10] =
    [".well-known", "apis", "healthz", "livez", "metrics", "openapi", "openid", "orlop", "readyz", "version"];

/// The mounts of a server, longest prefix first.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Vec<Arc<Mount>>);

impl Mounts {
    /// Refuses mounts that collide with a path of the server, with a resource of the core group, or with each other.
    pub fn new(mounts: Vec<Mount>, registry: &Registry) -> Result<Self, Error> {
        let mut prefixes = BTreeSet::new();
        for mount in &mounts {
            let problem = problem_of(mount, registry)
                .or_else(|| (!prefixes.insert(mount.prefix())).then(|| "is mounted twice".to_owned()));
            if let Some(problem) = problem {
                return Err(refusal(mount, &problem));
            }
        }
        let mut table: Vec<_> = mounts.into_iter().map(Arc::new).collect();
        table.sort_by_key(|mount| std::cmp::Reverse(mount.prefix().len()));
        let table = Self(table);
        for mount in &table.0 {
            let is_hidden =
                |path: &str| table.find(path).is_none_or(|found| found.prefix() != mount.prefix());
            if let Some((_, path)) = mount.public_paths().find(|(_, path)| is_hidden(path)) {
                return Err(refusal(
                    mount,
                    &format!("has the public path {}, which is another's", quote(&path)),
                ));
            }
        }
        Ok(table)
    }

    /// The mount of a path, matched by whole segments of the original text.
    pub fn find(&self, path: &str) -> Option<&Arc<Mount>> {
        self.0.iter().find(|mount| mount.path_below(path).is_some())
    }

    /// All mounts.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter().map(|mount| &**mount)
    }
}

fn refusal(mount: &Mount, problem: &str) -> Error {
    Error::bad_request(format!("mount {} {problem}", quote(mount.prefix())))
}

/// The reason to refuse a mount.
fn problem_of(mount: &Mount, registry: &Registry) -> Option<String> {
    let Some(segments) = segments(mount.prefix()) else {
        return Some("is no absolute path of plain segments".to_owned());
    };
    for (_, path) in mount.public_paths() {
        let is_plain = mount.path_below(&path).is_some() && self::segments(&path).is_some();
        if !is_plain {
            return Some(format!("has the public path {}, which is no plain path", quote(&path)));
        }
    }
    let is_core =
        |version: &str| registry.types().any(|served| served.group.is_empty() && served.version == version);
    match segments.as_slice() {
        ["api"] => Some("hides the versions of the core group".to_owned()),
        ["api", version] if is_core(version) => Some("hides the resources of the core group".to_owned()),
        ["api", version, first, ..] if is_core(version) => {
            let is_resource = registry.find("", version, first).is_some();
            let is_taken = is_resource || matches!(*first, "namespaces" | "watch");
            is_taken.then(|| format!("hides the resource {} of the core group", quote(first)))
        }
        [first, ..] if RESERVED.contains(first) => Some(format!("collides with /{first} of the server")),
        _ => None,
    }
}

/// The segments of an absolute path of unreserved characters, without a trailing slash.
fn segments(path: &str) -> Option<Vec<&str>> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let is_plain =
        |segment: &&str| !matches!(*segment, "" | "." | "..") && segment.bytes().all(is_unreserved);
    segments.iter().all(is_plain).then_some(segments)
}

/// Refuses paths with an alternative spelling that a handler could normalize: dot segments, empty segments, and escapes of
/// unreserved characters or separators. The authorizer decides about the text, so each path has one spelling.
pub(crate) fn check_spelling(below: &str) -> Result<(), Error> {
    let refuse = |problem: &str| Err(Error::bad_request(format!("the path has {problem}")));
    let mut segments = below.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if matches!(segment, "." | "..") || segment.is_empty() && !is_last {
            return refuse("a segment that is empty, \".\" or \"..\"");
        }
    }
    if below.contains('\\') || below.split('%').skip(1).any(|escaped| !is_needed(escaped)) {
        return refuse("a needless or forbidden escape");
    }
    match percent_decode_str(below).decode_utf8() {
        Ok(_) => Ok(()),
        Err(_) => refuse("an escape that is not UTF-8"),
    }
}

/// Whether the escape is necessary: of a byte that is reserved and no separator.
fn is_needed(escaped: &str) -> bool {
    let byte = escaped.get(..2).and_then(|digits| {
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        are_digits.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
    });
    byte.is_some_and(|byte| !is_unreserved(byte) && !byte.is_ascii_control() && !matches!(byte, b'/' | b'\\'))
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use http::{Method, Response};
    use mount::{Body, Call};

    use super::*;
    use crate::built_in;

    fn mount(prefix: &str) -> Mount {
        Mount::new(prefix, |_: Call| async { Response::new(Body::empty()) })
    }

    fn built_in() -> Registry {
        let mut registry = Registry::default();
        built_in::all().into_iter().for_each(|resource_type| registry.register(resource_type));
        registry
    }

    #[track_caller]
    fn refused(mounts: Vec<Mount>, expected: &str) {
        let error = Mounts::new(mounts, &built_in()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_prefix_that_hides_a_path_of_the_server_is_refused() {
        for first in RESERVED {
            refused(vec![mount(&format!("/{first}"))], "collides with");
            refused(vec![mount(&format!("/{first}/below/it"))], "collides with");
        }
        for prefix in
            ["/api", "/api/v1", "/api/v1/pods", "/api/v1/pods/x", "/api/v1/namespaces", "/api/v1/watch"]
        {
            refused(vec![mount(prefix)], "of the core group");
        }
        let allowed =
            ["/api/v1/resources", "/api/hyperfleet/v1", "/api/v2", "/console", "/healthzy", "/pods"];
        Mounts::new(allowed.map(mount).into(), &built_in()).unwrap();
    }

    #[test]
    fn a_prefix_is_an_absolute_path_of_plain_segments() {
        for prefix in
            ["", "/", "console", "/console/", "//console", "/a/../b", "/./a", "/a%62", "/a b", "/a*", "/ä"]
        {
            refused(vec![mount(prefix)], "is no absolute path of plain segments");
        }
    }

    #[test]
    fn two_mounts_of_one_prefix_are_refused_and_of_nested_ones_the_longest_serves() {
        refused(vec![mount("/a"), mount("/a")], "is mounted twice");
        let nested = Mounts::new(["/a", "/a/b/c", "/a/b"].map(mount).into(), &Registry::default()).unwrap();
        for (path, prefix) in
            [("/a", "/a"), ("/a/bc", "/a"), ("/a/b", "/a/b"), ("/a/b/", "/a/b"), ("/a/b/c/d", "/a/b/c")]
        {
            assert_eq!(nested.find(path).map(|mount| mount.prefix()), Some(prefix), "{path}");
        }
        assert!(nested.find("/ab").is_none() && nested.find("/").is_none());
    }

    #[test]
    fn a_public_path_is_plain_and_below_no_other_mount() {
        for path in ["openapi", "/openapi/", "/a/../b", "/%6f", "/"] {
            refused(vec![mount("/a").public(Method::GET, path)], "which is no plain path");
        }
        refused(vec![mount("/a").public(Method::GET, "/b/x"), mount("/a/b")], "which is another's");
        let open = mount("/a").public(Method::GET, "").public(Method::GET, "/openapi");
        Mounts::new(vec![open, mount("/a/b")], &built_in()).unwrap();
    }

    #[test]
    fn a_path_below_a_mount_has_one_spelling() {
        for below in
            ["", "/", "/a", "/a/", "/a/b", "/a%20b", "/%C3%A4", "/a%3Fb", "/...", "/a.b~c", "/a:b@c;d"]
        {
            assert_eq!(check_spelling(below), Ok(()), "{below}");
        }
        for below in [
            "//",
            "/a//b",
            "/.",
            "/..",
            "/a/../b",
            "/a/./b",
            "/%2e%2e/b",
            "/%2E",
            "/a%2Fb",
            "/a%2fb",
            "/a%5Cb",
            "/a\\b",
            "/%61",
            "/%7E",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a%+f",
            "/%00",
            "/%0A",
            "/%7f",
            "/%ff",
            "/%C3",
        ] {
            assert!(check_spelling(below).is_err(), "{below}");
        }
    }
}
