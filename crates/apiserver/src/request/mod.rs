//! Parsing of requests by pure functions: path, query, verb, content negotiation.

pub mod list_options;
pub mod negotiate;
pub mod path;
pub mod query;
pub mod verb;

use http::Method;

use path::ResourcePath;
use query::Query;
use verb::Verb;

/// The verb of a method on a resource path; `None` if Kubernetes has none.
pub fn verb(method: &Method, path: &ResourcePath, query: &Query) -> Option<Verb> {
    let collection = path.name.is_empty();
    match *method {
        Method::GET if path.watch_prefix => Some(Verb::Watch),
        _ if path.watch_prefix => None,
        Method::GET if collection && query.flag("watch") => Some(Verb::Watch),
        Method::GET if collection => Some(Verb::List),
        Method::GET => Some(Verb::Get),
        Method::POST if collection || !path.subresource.is_empty() => Some(Verb::Create),
        Method::PUT if !collection => Some(Verb::Update),
        Method::PATCH if !collection => Some(Verb::Patch),
        Method::DELETE if collection => Some(Verb::DeleteCollection),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legacy_watch_path_only_takes_get_and_no_path_takes_head() {
        let query = Query::parse("");
        let old = ResourcePath { watch_prefix: true, ..ResourcePath::default() };
        assert_eq!(verb(&Method::GET, &old, &query), Some(Verb::Watch));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(verb(&method, &old, &query), None);
        }
        assert_eq!(verb(&Method::HEAD, &ResourcePath::default(), &query), None);
    }
}
