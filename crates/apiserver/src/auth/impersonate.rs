//! Impersonation: needs the verb `impersonate` on each attribute of the impersonated user.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName};
use model::error::Error;

use super::accounts::account_of;
use super::proxy::{extras, values};
use super::{Authorizer, AuthorizerAttributes, Identity};
use crate::request::path::ResourcePath;

pub(crate) const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// One attribute of the impersonated user: user, group, uid or extra value.
struct ImpersonatedAttribute {
    kind: &'static str,
    resource: &'static str,
    namespace: String,
    name: String,
    /// The key of an extra value.
    key: String,
}

impl ImpersonatedAttribute {
    fn new(kind: &'static str, resource: &'static str, name: &str) -> Self {
        Self { kind, resource, namespace: String::new(), name: name.to_owned(), key: String::new() }
    }

    fn group(&self) -> &'static str {
        if matches!(self.kind, "UID" | "UserExtra") { AUTHENTICATION } else { "" }
    }

    fn path(&self) -> ResourcePath {
        ResourcePath {
            group: self.group().to_owned(),
            version: "v1".to_owned(),
            resource: self.resource.to_owned(),
            subresource: self.key.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ..ResourcePath::default()
        }
    }

    /// An object reference in Go's format.
    fn shown(&self) -> String {
        let version = if self.group().is_empty() { "" } else { "authentication.k8s.io/v1" };
        format!("{{{} {} {}  {version}  {}}}", self.kind, self.namespace, self.name, self.key)
    }
}

/// Whether a request has impersonation headers.
pub(crate) fn is_requested(headers: &HeaderMap) -> bool {
    headers.keys().any(is_header)
}

/// Whether a header belongs to impersonation.
pub(crate) fn is_header(name: &HeaderName) -> bool {
    name.as_str().starts_with("impersonate-")
}

/// The effective user: the impersonated one if the headers name one and the caller may impersonate it.
pub(crate) fn effective_user(
    caller: Identity,
    headers: &HeaderMap,
    authorizer: &dyn Authorizer,
) -> Result<Identity, Error> {
    let impersonated = impersonated(headers)?;
    if impersonated.is_empty() {
        return Ok(caller);
    }
    let mut identity = Identity::default();
    let has_groups = headers.contains_key(GROUP);
    for attribute in impersonated {
        authorizer.require(
            &caller,
            AuthorizerAttributes::Resource { verb: "impersonate", path: &attribute.path() },
        )?;
        match attribute.kind {
            "ServiceAccount" => {
                let account = Identity::service_account(&attribute.namespace, &attribute.name);
                identity.name = account.name;
                if !has_groups {
                    identity.groups = account.groups;
                }
            }
            "User" => identity.name = attribute.name,
            "Group" => identity.groups.push(attribute.name),
            "UID" => identity.uid = attribute.name,
            _ => identity.extra.entry(attribute.key).or_default().push(attribute.name),
        }
    }
    let (authenticated, unauthenticated) = ("system:authenticated", "system:unauthenticated");
    let is_anonymous = identity.name == "system:anonymous";
    if is_anonymous && !identity.is_in(unauthenticated) {
        identity.groups.push(unauthenticated.to_owned());
    } else if !is_anonymous && !identity.is_in(authenticated) && !identity.is_in(unauthenticated) {
        identity.groups.push(authenticated.to_owned());
    }
    Ok(identity)
}

fn impersonated(headers: &HeaderMap) -> Result<Vec<ImpersonatedAttribute>, Error> {
    let one = |name: &str| values(headers, name).next().filter(|value| !value.is_empty());
    let mut impersonated = Vec::new();
    let user = one(USER);
    impersonated.extend(user.as_deref().map(|user| match account_of(user) {
        Some((namespace, name)) => {
            let account = ImpersonatedAttribute::new("ServiceAccount", "serviceaccounts", name);
            ImpersonatedAttribute { namespace: namespace.to_owned(), ..account }
        }
        None => ImpersonatedAttribute::new("User", "users", user),
    }));
    impersonated
        .extend(values(headers, GROUP).map(|group| ImpersonatedAttribute::new("Group", "groups", &group)));
    let mut all: BTreeMap<String, Vec<Cow<'_, str>>> = BTreeMap::new();
    extras(headers, EXTRA).for_each(|(key, value)| all.entry(key).or_default().push(value));
    for (key, values) in all {
        impersonated.extend(values.into_iter().map(|value| ImpersonatedAttribute {
            key: key.clone(),
            ..ImpersonatedAttribute::new("UserExtra", "userextras", &value)
        }));
    }
    impersonated.extend(one(UID).map(|uid| ImpersonatedAttribute::new("UID", "uids", &uid)));
    if user.is_none() && !impersonated.is_empty() {
        let shown: Vec<String> = impersonated.iter().map(ImpersonatedAttribute::shown).collect();
        let message = format!("requested [{}] without impersonating a user", shown.join(" "));
        return Err(Error::BadRequest { message });
    }
    Ok(impersonated)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::auth::{Decision, Rules};

    struct Anyone;

    impl Authorizer for Anyone {
        fn decide(&self, _: &Identity, _: AuthorizerAttributes<'_>) -> Decision {
            Decision::allow()
        }

        fn rules(&self, _: &Identity, _: &str) -> Rules {
            Rules::default()
        }
    }

    #[test]
    fn an_impersonation_header_that_is_not_ascii_is_not_ignored() {
        let gateway = Identity::authenticated("gateway", ["system:masters".to_owned()]);
        for (bytes, name) in [("jürgen".as_bytes(), "jürgen"), (&b"j\xfcrgen"[..], "j\u{fffd}rgen")] {
            let mut headers = HeaderMap::new();
            headers.insert(USER, HeaderValue::from_bytes(bytes).unwrap());
            let acting = effective_user(gateway.clone(), &headers, &Anyone).unwrap();
            assert_eq!((acting.name.as_str(), acting.is_in("system:masters")), (name, false));
        }
    }
}
