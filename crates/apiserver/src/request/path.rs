//! Parsing of URL paths into resource paths and non-resource paths. Pure.
//!
//! Accepted forms, with `BASE` = `/api/VERSION` or `/apis/GROUP/VERSION`: `BASE/RESOURCE`, `BASE/RESOURCE/NAME`,
//! `BASE/RESOURCE/NAME/SUBRESOURCE`, the same below `BASE/namespaces/NAMESPACE/`, and the legacy watch forms with `watch/`
//! after `BASE/`. Everything else is a non-resource path.

use percent_encoding::percent_decode_str;

/// A resource path below `/api` or `/apis`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// Empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// Empty if the path has none.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// Empty for a collection.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Whether the path has the legacy form `BASE/watch/…`.
    pub watch_prefix: bool,
    /// The path behind a proxy subresource.
    pub beyond: String,
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedPath {
    /// A resource path.
    Resource(ResourcePath),
    /// A non-resource path (discovery, health, version, metrics) in its original text: the authorizer decides about the same
    /// text that is served.
    Plain(String),
}

/// Parses a path. `None` if a segment is not UTF-8 after decoding.
pub fn parse(path: &str) -> Option<ParsedPath> {
    let plain = || Some(ParsedPath::Plain(path.to_owned()));
    let segments = decode(path)?;
    let mut rest = segments.as_slice();
    let (group, version) = match rest {
        [root, version, tail @ ..] if root == "api" => {
            rest = tail;
            (String::new(), version.clone())
        }
        [root, group, version, tail @ ..] if root == "apis" => {
            rest = tail;
            (group.clone(), version.clone())
        }
        _ => return plain(),
    };
    let mut parsed = ResourcePath { group, version, ..ResourcePath::default() };
    if let [first, tail @ ..] = rest
        && first == "watch"
        && !tail.is_empty()
    {
        parsed.watch_prefix = true;
        rest = tail;
    }
    let whole = rest;
    rest = take_namespace(&mut parsed, whole);
    // Namespaces are not namespaced.
    if rest.len() < whole.len() && rest.first().is_some_and(|first| first == "namespaces") {
        return plain();
    }
    match rest {
        [] => return plain(),
        [resource] => parsed.resource = resource.clone(),
        [resource, name] => (parsed.resource, parsed.name) = (resource.clone(), name.clone()),
        [resource, name, first, further @ ..] => {
            (parsed.resource, parsed.name) = (resource.clone(), name.clone());
            let mut further = further;
            if first == "proxy" {
                parsed.beyond = beyond(further, path.ends_with('/'));
                further = &[];
            }
            parsed.subresource = [std::slice::from_ref(first), further].concat().join("/");
        }
    }
    Some(ParsedPath::Resource(parsed))
}

/// Joins segments, with a trailing slash if the original path has one.
fn beyond(segments: &[String], has_slash: bool) -> String {
    let mut path: String = segments.iter().flat_map(|segment| ["/", segment]).collect();
    if has_slash {
        path.push('/');
    }
    path
}

/// `namespaces/NS/RESOURCE…` is namespaced; `namespaces/NS` and the subresources of a Namespace are not.
fn take_namespace<'a>(parsed: &mut ResourcePath, rest: &'a [String]) -> &'a [String] {
    const OF_A_NAMESPACE_ITSELF: [&str; 2] = ["status", "finalize"];
    match rest {
        [first, namespace, tail @ ..] if first == "namespaces" && parsed.group.is_empty() => {
            let itself = match tail {
                [] => true,
                [only] => OF_A_NAMESPACE_ITSELF.contains(&only.as_str()),
                _ => false,
            };
            parsed.namespace.clone_from(namespace);
            if itself { rest } else { tail }
        }
        [first, namespace, tail @ ..] if first == "namespaces" && !tail.is_empty() => {
            parsed.namespace.clone_from(namespace);
            tail
        }
        _ => rest,
    }
}

fn decode(path: &str) -> Option<Vec<String>> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| percent_decode_str(segment).decode_utf8().ok().map(|text| text.into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: [&str; 6]) {
        let Some(ParsedPath::Resource(parsed)) = parse(path) else { panic!("{path} is not a resource") };
        let got = [
            &parsed.group,
            &parsed.version,
            &parsed.namespace,
            &parsed.resource,
            &parsed.name,
            &parsed.subresource,
        ];
        assert_eq!(got.map(String::as_str), expected, "{path}");
    }

    #[test]
    fn resource_paths_are_taken_apart() {
        check("/api/v1/configmaps", ["", "v1", "", "configmaps", "", ""]);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        check("/api/v1/namespaces/a", ["", "v1", "a", "namespaces", "a", ""]);
        check("/api/v1/namespaces/a/status", ["", "v1", "a", "namespaces", "a", "status"]);
        check("/api/v1/namespaces/a/configmaps", ["", "v1", "a", "configmaps", "", ""]);
        check("/api/v1/namespaces/a/configmaps/b%20c", ["", "v1", "a", "configmaps", "b c", ""]);
        check("/apis/g.io/v2/things/x/scale", ["g.io", "v2", "", "things", "x", "scale"]);
        check("/apis/g.io/v2/namespaces/n/things/x", ["g.io", "v2", "n", "things", "x", ""]);
        check("/api/v1/nodes/n/proxy/a/b", ["", "v1", "", "nodes", "n", "proxy"]);
        check("/api/v1/nodes/n/status/a/b", ["", "v1", "", "nodes", "n", "status/a/b"]);
    }

    #[test]
    fn the_path_behind_a_proxy_is_kept() {
        for (path, expected) in [("", ""), ("/", "/"), ("/a/b", "/a/b"), ("/a/b/", "/a/b/")] {
            let Some(ParsedPath::Resource(parsed)) = parse(&format!("/api/v1/nodes/n/proxy{path}")) else {
                panic!()
            };
            assert_eq!(parsed.beyond, expected);
        }
    }

    #[test]
    fn old_watch_paths_are_marked() {
        for path in ["/api/v1/watch/namespaces/a/secrets/s", "/apis/g/v1/watch/things"] {
            let Some(ParsedPath::Resource(parsed)) = parse(path) else { panic!("{path}") };
            assert!(parsed.watch_prefix, "{path}");
        }
        check("/api/v1/watch/namespaces/a/secrets/s", ["", "v1", "a", "secrets", "s", ""]);
    }

    #[test]
    fn non_resource_paths_are_plain() {
        for path in
            ["/", "/api", "/api/v1", "/apis/g/v1", "/healthz/ping", "/openapi/v3/apis/g/v1", "/version"]
        {
            assert!(matches!(parse(path), Some(ParsedPath::Plain(_))), "{path}");
        }
        for path in ["/api/v1/", "/metrics/", "/metrics//", "//metrics"] {
            assert_eq!(parse(path), Some(ParsedPath::Plain(path.to_owned())), "nothing is cut off");
        }
        assert_eq!(parse("/api/v1/configmaps/%ff"), None);
    }
}
