//! The address of a webhook: URL or Service.

use model::object::text_in;
use serde_json::Value;

/// Host, port and path of an HTTPS endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookAddress {
    /// Namespace and name of the Service, if it is one.
    pub service: Option<(String, String)>,
    /// The name in the server certificate.
    pub host: String,
    /// 443 by default.
    pub port: u16,
    /// Starts with a slash.
    pub path: String,
}

impl WebhookAddress {
    /// Parses a `clientConfig`.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn read(config: &Value) -> Result<Self, String> {
        let text = |value: &Value, key: &str| text_in(value, key).to_owned();
        if let Some(service) = config.get("service").filter(|service| service.is_object()) {
            let port = service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
            let path = text(service, "path");
            let (namespace, name) = (text(service, "namespace"), text(service, "name"));
            return Ok(Self {
                host: format!("{name}.{namespace}.svc"),
                service: Some((namespace, name)),
                port: port.unwrap_or(443),
                path: cleaned(&path),
            });
        }
        let url = text(config, "url");
        let address: http::Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let host = address.host().ok_or_else(|| format!("{url}: there is no host"))?;
        Ok(Self {
            service: None,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: address.port_u16().unwrap_or(443),
            path: cleaned(address.path()),
        })
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 443 && self.service.is_none() { host } else { format!("{host}:{}", self.port) }
    }

    /// The URL.
    pub fn address(&self) -> String {
        format!("https://{}{}", self.authority(), self.path)
    }
}

/// A path as Go clients send it: without empty and dot segments, and without a trailing slash.
fn cleaned(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn urls_and_services_are_read() {
        let address = |config: Value| WebhookAddress::read(&config).map(|target| target.address());
        assert_eq!(address(json!({"url": "https://a.io:9443/x"})), Ok("https://a.io:9443/x".to_owned()));
        assert_eq!(address(json!({"url": "https://[::1]/"})), Ok("https://[::1]/".to_owned()));
        let service = json!({"service": {"namespace": "n", "name": "s", "path": "/convert", "port": 443}});
        assert_eq!(address(service), Ok("https://s.n.svc:443/convert".to_owned()));
        assert!(address(json!({"url": "/only/a/path"})).is_err());
        let path =
            |path: &str| WebhookAddress::read(&json!({"url": format!("https://a.io{path}")})).unwrap().path;
        for (given, sent) in [("", "/"), ("/", "/"), ("//x", "/x"), ("/x//y/", "/x/y"), ("/x/../y/.", "/y")] {
            assert_eq!(path(given), sent, "{given}");
        }
    }
}
