//! The users of a kubeconfig: credentials for webhook calls, by the DNS name of the webhook.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Object;
use model::error::quote;
use model::json::parse_yaml;
use model::object::text;
use serde_json::Value;

use super::configuration::Load;

/// The port that the name of a user may omit.
const DEFAULT_PORT: u16 = 443;

/// The credentials of a user. Its `Debug` shows none of them.
#[derive(Clone, Default, PartialEq)]
pub struct User {
    /// Client certificate and key as PEM.
    pub certificate: Option<(String, String)>,
    /// A bearer token; empty for none.
    pub token: String,
    /// Name and password of basic authentication.
    pub basic: Option<(String, String)>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User(..)")
    }
}

/// The users of a kubeconfig, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Users {
    by_name: BTreeMap<String, User>,
    /// The user of the current context: the fallback for webhooks that no name matches.
    current: Option<String>,
}

impl Users {
    /// Parses a kubeconfig at an absolute path; relative file names are resolved against its directory.
    ///
    /// # Errors
    /// The reason why it cannot be used; it names fields and files, never their content.
    pub fn read(path: &str, load: Load<'_>) -> Result<Self, String> {
        let parsed = parse_yaml(&load(path)?);
        let parsed =
            parsed.map_err(|_| format!("error loading config file {}: it is no YAML", quote(path)))?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let file = |name: &str| match name.starts_with('/') {
            true => load(name),
            false => load(&format!("{folder}/{name}")),
        };
        let entries = |key: &str| {
            let list = parsed.value.get(key).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_object).map(|entry| (text(entry, &["name"]).to_owned(), entry))
        };
        let mut users = Self::default();
        for (name, entry) in entries("users") {
            let user = entry.get("user").and_then(Value::as_object).cloned().unwrap_or_default();
            let user =
                user_of(&user, &file).map_err(|problem| format!("user {}: {problem}", quote(&name)))?;
            users.by_name.insert(name, user);
        }
        let wanted = parsed.value.get("current-context").and_then(Value::as_str).unwrap_or_default();
        let context = entries("contexts").find(|(name, _)| name == wanted && !wanted.is_empty());
        let context = context.and_then(|(_, entry)| entry.get("context")).and_then(Value::as_object);
        users.current = context.map(|context| text(context, &["user"]).to_owned());
        Ok(users)
    }

    /// The credentials for a webhook: those of the user `host:port`, then of a wildcard `*.suffix`, then the same
    /// without the default port, then of the current context.
    pub fn of(&self, host: &str, port: u16) -> Option<&User> {
        let with_port = self.matching(&format!("{host}:{port}"));
        let without = || (port == DEFAULT_PORT).then(|| self.matching(host)).flatten();
        let current = || self.current.as_ref().and_then(|name| self.by_name.get(name));
        with_port.or_else(without).or_else(current)
    }

    fn matching(&self, target: &str) -> Option<&User> {
        let ends = target.match_indices('.').map(|(at, _)| format!("*{}", &target[at..]));
        std::iter::once(target.to_owned()).chain(ends).find_map(|name| self.by_name.get(&name))
    }
}

fn user_of(user: &Object, file: Load<'_>) -> Result<User, String> {
    for field in ["exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra"] {
        if user.get(field).is_some_and(|value| !value.is_null()) {
            return Err(format!("{field} is not supported"));
        }
    }
    let read = |name: &str| {
        let bytes = file(name)?;
        String::from_utf8(bytes).map_err(|_| format!("{} is no text", quote(name)))
    };
    // Inline data takes precedence over a file, as in client-go.
    let part = |field: &str| {
        let data = text(user, &[&format!("{field}-data")]);
        if !data.is_empty() {
            let bytes = STANDARD.decode(data).map_err(|_| format!("{field}-data is no base64"))?;
            return String::from_utf8(bytes).map_err(|_| format!("{field}-data is no PEM"));
        }
        match text(user, &[field]) {
            "" => Ok(String::new()),
            name => read(name),
        }
    };
    let (certificate, key) = (part("client-certificate")?, part("client-key")?);
    if certificate.is_empty() != key.is_empty() {
        return Err("client-certificate and client-key belong together".to_owned());
    }
    let token = match (text(user, &["token"]), text(user, &["tokenFile"])) {
        ("", "") => String::new(),
        ("", name) => read(name)?.trim().to_owned(),
        (token, _) => token.to_owned(),
    };
    let (name, password) = (text(user, &["username"]).to_owned(), text(user, &["password"]).to_owned());
    let basic = (!name.is_empty() || !password.is_empty()).then_some((name, password));
    if basic.is_some() && !token.is_empty() {
        return Err("username/password or bearer token may be set, but not both".to_owned());
    }
    let certificate = (!certificate.is_empty()).then_some((certificate, key));
    Ok(User { certificate, token, basic })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> Result<Users, String> {
        let load = |path: &str| match path {
            "/etc/kube/config" => Ok(text.as_bytes().to_vec()),
            "/etc/kube/token" => Ok(b"of-a-file\n".to_vec()),
            "/pki/tls.crt" => Ok(b"certificate".to_vec()),
            _ => Err(format!("{path} is not there")),
        };
        Users::read("/etc/kube/config", &load)
    }

    #[test]
    fn the_most_specific_user_name_matches_a_webhook() {
        let names = ["hook.a.svc:8443", "hook.a.svc", "*.a.svc", "*.svc:8443", "*.svc", "*"];
        let list: Vec<String> =
            names.iter().map(|name| format!("{{name: '{name}', user: {{token: 't {name}'}}}}")).collect();
        let contexts = "contexts: [{name: c, context: {user: '*'}}], current-context: c";
        let users = users(&format!("{{users: [{}], {contexts}}}", list.join(", "))).unwrap();
        for (host, port, expected) in [
            ("hook.a.svc", 8443, "hook.a.svc:8443"),
            ("hook.a.svc", 443, "hook.a.svc"),
            ("other.a.svc", 443, "*.a.svc"),
            ("other.b.svc", 8443, "*.svc:8443"),
            ("other.b.svc", 443, "*.svc"),
            ("other.b.svc", 444, "*"),
            ("10.0.0.1", 443, "*"),
        ] {
            let found = users.of(host, port).map(|user| user.token.clone());
            assert_eq!(found, Some(format!("t {expected}")), "{host}:{port}");
        }
        assert_eq!(Users::default().of("hook.a.svc", 443), None);
    }

    #[test]
    fn every_kind_of_credentials_is_read_and_none_is_shown() {
        let read = |user: &str| users(&format!("{{users: [{{name: h, user: {user}}}]}}"));
        let of = |user: &str| read(user).unwrap().of("h", 443).cloned().unwrap();
        assert_eq!(of("{tokenFile: token}").token, "of-a-file");
        assert_eq!(of("{token: a, tokenFile: token}").token, "a");
        assert_eq!(of("{username: u, password: p}").basic, Some(("u".to_owned(), "p".to_owned())));
        let pair = of("{client-certificate: /pki/tls.crt, client-key-data: a2V5}").certificate;
        assert_eq!(pair, Some(("certificate".to_owned(), "key".to_owned())));
        for (user, expected) in [
            ("{client-key: none}", "/etc/kube/none is not there"),
            ("{client-key-data: a2V5}", "client-certificate and client-key belong together"),
            ("{token: secret, username: u}", "username/password or bearer token may be set, but not both"),
            ("{exec: {}}", "exec is not supported"),
        ] {
            let problem = read(user).unwrap_err();
            assert_eq!(problem, format!("user \"h\": {expected}"));
        }
        let shown = format!("{:?}", read("{token: secret}").unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}
