//! `/healthz`, `/livez` and `/readyz`, with named checks.

use std::fmt::Write;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};

use crate::api::ApiServer;
use crate::body::Body;
use crate::request::query::Query;

/// The checks of an endpoint, in the order in which they are listed.
fn checks(endpoint: &str) -> &'static [&'static str] {
    match endpoint {
        "livez" => &["ping", "log"],
        "readyz" => &["ping", "log", "database", "shutdown"],
        _ => &["ping", "log", "database"],
    }
}

/// Takes `/livez/ping` apart.
pub fn endpoint(path: &str) -> Option<(&str, Option<&str>)> {
    let path = path.strip_prefix('/')?;
    let (endpoint, check) = match path.split_once('/') {
        Some((endpoint, check)) => (endpoint, Some(check)),
        None => (path, None),
    };
    matches!(endpoint, "healthz" | "livez" | "readyz").then_some((endpoint, check))
}

/// Runs the checks and reports: `ok`, or a line for each check.
pub async fn answer(api: &ApiServer, endpoint: &str, only: Option<&str>, query: &Query) -> Response<Body> {
    let names: Vec<&str> = match only {
        None => checks(endpoint).to_vec(),
        Some(check) if checks(endpoint).contains(&check) => vec![check],
        Some(_) => return plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
    };
    let mut lines = String::new();
    let mut failed = Vec::new();
    for name in names {
        if query.all("exclude").any(|excluded| excluded == name) {
            let _ = writeln!(lines, "[+]{name} excluded: ok");
        } else if passes(api, name).await {
            let _ = writeln!(lines, "[+]{name} ok");
        } else {
            let _ = writeln!(lines, "[-]{name} failed: reason withheld");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n"));
    }
    let verbose = query.has("verbose");
    plain(StatusCode::OK, if verbose { format!("{lines}{endpoint} check passed\n") } else { "ok".to_owned() })
}

async fn passes(api: &ApiServer, check: &str) -> bool {
    match check {
        "database" => api.store.clock().await.is_ok(),
        "shutdown" => !api.shutdown.is_requested() && !api.leaving.is_requested(),
        _ => true,
    }
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
