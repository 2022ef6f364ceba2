//! The client config of a webhook: a URL or a Service.

use model::Object;
use model::error::{FieldError, Path, quote};
use model::names::dns1123_subdomain;
use model::object::{has, number, text, value};

const FORM: &str = "; desired format: https://host[/path]";

/// Validates a client config: exactly one of URL and Service, and a valid one.
pub fn bad_client_config(path: &Path<'_>, config: &Object) -> Vec<FieldError> {
    match (has(config, &["url"]), value(config, &["service"]).and_then(|service| service.as_object())) {
        (true, None) => bad_url(&path.field("url"), text(config, &["url"])),
        (false, Some(service)) => bad_service(&path.field("service"), service),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

/// A parsed URL.
#[derive(Default)]
struct Url<'a> {
    scheme: String,
    user: Option<&'a str>,
    host: &'a str,
    query: &'a str,
    fragment: &'a str,
}

fn bad_url(path: &Path<'_>, url: &str) -> Vec<FieldError> {
    let parts = match parse(url) {
        Ok(parts) => parts,
        Err(problem) => {
            let detail = format!("url must be a valid URL: parse {}: {problem}{FORM}", quote(url));
            return vec![FieldError::required(path, detail)];
        }
    };
    let mut errors = Vec::new();
    if parts.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, parts.scheme, detail));
    }
    if parts.host.is_empty() {
        errors.push(FieldError::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = parts.user {
        errors.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !parts.fragment.is_empty() {
        errors.push(FieldError::invalid(path, parts.fragment, "fragments are not permitted in the URL"));
    }
    if !parts.query.is_empty() {
        errors.push(FieldError::invalid(path, parts.query, "query parameters are not permitted in the URL"));
    }
    errors
}

fn parse(url: &str) -> Result<Url<'_>, String> {
    if url.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (scheme, rest) = split_scheme(rest)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts = Url { scheme: scheme.to_ascii_lowercase(), query, fragment, ..Url::default() };
    if let Some(rest) = rest.strip_prefix("//") {
        let authority = rest.split('/').next().unwrap_or_default();
        (parts.user, parts.host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        check_port(parts.host)?;
    }
    Ok(parts)
}

/// Splits off the scheme; a text without one is a path.
fn split_scheme(url: &str) -> Result<(&str, &str), String> {
    match url.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))) {
        Some(0) if url.starts_with(':') => Err("missing protocol scheme".to_owned()),
        Some(end) if url[end..].starts_with(':') && url.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Ok((&url[..end], &url[end + 1..]))
        }
        _ => Ok(("", url)),
    }
}

fn check_port(host: &str) -> Result<(), String> {
    let port = match host.rfind(']') {
        Some(end) => &host[end + 1..],
        None => host.find(':').map_or("", |start| &host[start..]),
    };
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        None if port.is_empty() => Ok(()),
        _ => Err(format!("invalid port {} after host", quote(port))),
    }
}

fn bad_service(path: &Path<'_>, service: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // Kubernetes swaps the two field names in its errors, too.
    for (field, reported) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, &[field]).is_empty() {
            errors.push(FieldError::required(path.field(reported), ""));
        }
    }
    let port = number(service, &["port"]);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.field("port"), port, detail));
    }
    errors.extend(bad_path(&path.field("path"), text(service, &["path"])));
    errors
}

fn bad_path(at: &Path<'_>, path: &str) -> Vec<FieldError> {
    if path.is_empty() || path == "/" {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let mut refuse = |detail: String| errors.push(FieldError::invalid(at, path, detail));
    if !path.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    let start = path.chars().next().map_or(0, char::len_utf8);
    let steps = &path[start..];
    let steps = if path == "//" { "" } else { steps.strip_suffix('/').unwrap_or(steps) };
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{index}] may not be empty"));
            continue;
        }
        for failure in dns1123_subdomain(step) {
            refuse(format!("segment[{index}]: {failure}"));
        }
    }
    errors
}
