//! `--anonymous-auth` and `--authentication-config`: requests without credentials.

use anyhow::{Context, Result, anyhow, bail};
use model::json::parse_yaml;
use serde_json::Value;
use server::Anonymous;

use crate::go_flags::Given;

/// Validates the flags. With AlwaysAllow only a file allows anonymous requests.
pub(super) fn anonymous(
    given: &Given,
    allows_all: bool,
    read: impl Fn(&str, &str) -> Result<String>,
) -> Result<Anonymous> {
    let by_flag = given.switch("anonymous-auth");
    if let Some(path) = given.text("authentication-config") {
        let text = read("--authentication-config", path)?;
        match configured(&text).with_context(|| format!("{path} cannot be used"))? {
            Some(_) if by_flag.is_some() => {
                bail!(
                    "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"
                )
            }
            Some(configured) => return Ok(configured),
            None => {}
        }
    }
    Ok(if by_flag == Some(false) || allows_all { Anonymous::Refused } else { Anonymous::Allowed })
}

/// The setting of a file; `None` if it has no `anonymous` field.
fn configured(text: &str) -> Result<Option<Anonymous>> {
    let parsed = parse_yaml(text.as_bytes()).map_err(|error| anyhow!("{error}"))?;
    let file = parsed.value;
    if file["kind"] != "AuthenticationConfiguration" {
        bail!("it contains no AuthenticationConfiguration");
    }
    if file["jwt"].as_array().is_some_and(|issuers| !issuers.is_empty()) {
        bail!("jwt: OpenID Connect is not supported");
    }
    let anonymous = match &file["anonymous"] {
        Value::Null => return Ok(None),
        anonymous => anonymous,
    };
    if anonymous["enabled"] != Value::Bool(true) {
        return Ok(Some(Anonymous::Refused));
    }
    let paths = anonymous["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let paths: Vec<String> =
        paths.iter().filter_map(|condition| condition["path"].as_str().map(str::to_owned)).collect();
    Ok(Some(if paths.is_empty() { Anonymous::Allowed } else { Anonymous::AllowedAt(paths) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_allow_anonymous_requests_at_some_paths() {
        let of = |rest: &str| {
            configured(&format!(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n{rest}"
            ))
        };
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("anonymous: {enabled: false}").unwrap(), Some(Anonymous::Refused));
        assert_eq!(of("anonymous: {enabled: true}").unwrap(), Some(Anonymous::Allowed));
        assert_eq!(
            of("anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}").unwrap(),
            Some(Anonymous::AllowedAt(vec!["/livez".to_owned(), "/readyz".to_owned()]))
        );
        assert!(of("jwt: [{issuer: {url: https://a}}]").is_err());
        assert!(configured("kind: Other").is_err());
    }
}
