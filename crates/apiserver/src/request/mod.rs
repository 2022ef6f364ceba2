//! A request, taken apart by pure functions: path, query, verb, content negotiation.

pub mod list_options;
pub mod negotiate;
pub mod path;
pub mod query;
pub mod verb;

use http::Method;

use path::ResourcePath;
use query::Query;
use verb::Verb;

/// Which verb a method means at a place; `None` where Kubernetes has no such method.
pub fn verb(method: &Method, place: &ResourcePath, query: &Query) -> Option<Verb> {
    let collection = place.name.is_empty();
    match *method {
        Method::GET if place.watch_prefix => Some(Verb::Watch),
        Method::GET if collection && query.flag("watch") => Some(Verb::Watch),
        Method::GET | Method::HEAD if collection => Some(Verb::List),
        Method::GET | Method::HEAD => Some(Verb::Get),
        Method::POST if collection || !place.subresource.is_empty() => Some(Verb::Create),
        Method::PUT if !collection => Some(Verb::Update),
        Method::PATCH if !collection => Some(Verb::Patch),
        Method::DELETE if collection => Some(Verb::DeleteCollection),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    }
}
