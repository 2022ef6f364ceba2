//! Authentication and authorization flags of kube-apiserver, translated to those of `up`.

use std::path::PathBuf;

use anyhow::Result;
use apiserver::auth::StaticToken;
use process::reload::{Current, Reloader, Updater};
use server::{Anonymous, AuthConfig, ClientCas};

use super::authentication::anonymous;
use crate::auth::AuthArgs;
use crate::go_flags::Given;

/// The files that the flags name, and the values that follow them.
pub(super) struct Followed<'a> {
    pub(super) files: &'a mut Reloader,
    pub(super) client_cas: Updater<ClientCas>,
    pub(super) tokens: Current<Vec<StaticToken>>,
}

/// Validates the flags, and reads the files that they name with `read`. Adds warnings for the operator.
pub(super) fn config(
    given: &Given,
    followed: Followed<'_>,
    warnings: &mut Vec<String>,
    read: impl Fn(&str, &str) -> Result<String>,
) -> Result<AuthConfig> {
    let mut modes = given.list("authorization-mode");
    if modes.is_empty() {
        modes.push("AlwaysAllow".to_owned());
    }
    // No other authorizer takes its place: `Node` alone allows only nodes, and there are none.
    if modes.iter().any(|mode| mode == "Node") {
        warnings.push(
            "--authorization-mode=Node has no effect here: nodes have the rights that roles give them"
                .to_owned(),
        );
        modes.retain(|mode| mode != "Node");
    }
    let allows_all = modes.iter().any(|mode| mode == "AlwaysAllow");
    let anonymous = anonymous(given, allows_all, read)?;
    if allows_all && anonymous == Anonymous::Refused && given.switch("anonymous-auth") != Some(false) {
        warnings.push("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer".to_owned());
    }
    let paths = |name: &str| given.each(name).map(PathBuf::from).collect::<Vec<_>>();
    let longest = given
        .time("service-account-max-token-expiration")
        .filter(|longest| !longest.is_zero())
        .map(|longest| i64::try_from(longest.as_secs()).unwrap_or(i64::MAX));
    let args = AuthArgs {
        authorization_mode: modes,
        anonymous_auth: anonymous != Anonymous::Refused,
        service_account_key_file: paths("service-account-key-file"),
        service_account_signing_key_file: paths("service-account-signing-key-file").pop(),
        service_account_issuer: given.each("service-account-issuer").map(str::to_owned).collect(),
        service_account_max_token_expiration: longest,
        service_account_extend_token_expiration: given
            .switch("service-account-extend-token-expiration")
            .unwrap_or(true),
        service_account_jwks_uri: given.text("service-account-jwks-uri").map(str::to_owned),
        api_audiences: given.list("api-audiences"),
        requestheader_client_ca_file: paths("requestheader-client-ca-file").pop(),
        requestheader_allowed_names: given.list("requestheader-allowed-names"),
        requestheader_username_headers: given.list("requestheader-username-headers"),
        requestheader_uid_headers: given.list("requestheader-uid-headers"),
        requestheader_group_headers: given.list("requestheader-group-headers"),
        requestheader_extra_headers_prefix: given.list("requestheader-extra-headers-prefix"),
    };
    let Followed { files, client_cas, tokens } = followed;
    let mut auth = args.config(files, client_cas, tokens)?;
    if auth.anonymous == Anonymous::Allowed {
        auth.anonymous = anonymous;
    }
    Ok(auth)
}
