//! Who may connect and who may do what: kube-apiserver's flags in the terms of the other roles.

use std::path::PathBuf;

use anyhow::{Result, bail};
use apiserver::auth::ServiceAccounts;
use process::reload::{Reloader, Updater};

use super::authentication::{Anonymous, anonymous};
use crate::access::{Access, AccessArgs};
use crate::go_flags::Given;
use crate::trust::Trusted;

/// Everything about access that the flags say.
pub(super) struct Settings {
    pub(super) access: Access,
    pub(super) accounts: ServiceAccounts,
    /// The only paths at which requests without credentials are let in; `None` where there is no such list.
    pub(super) anonymous_at: Option<Vec<String>>,
    /// What the operator has to know.
    pub(super) warnings: Vec<String>,
}

impl Settings {
    /// Reads the flags, and the files that they name.
    pub(super) fn new(
        given: &Given,
        files: &mut Reloader,
        trust: &Updater<Trusted>,
        read: impl Fn(&str, &str) -> Result<String>,
    ) -> Result<Self> {
        let mut warnings = Vec::new();
        let mut modes = given.list("authorization-mode");
        if modes.is_empty() {
            modes.push("AlwaysAllow".to_owned());
        }
        // Not the usual mode in its place: who asks for `Node` alone lets nobody in but nodes, of which there are none.
        if modes.iter().any(|mode| mode == "Node") {
            warnings.push(
                "--authorization-mode=Node has no effect here: nodes have the rights that roles give them"
                    .to_owned(),
            );
            modes.retain(|mode| mode != "Node");
        }
        let everyone_may = modes.iter().any(|mode| mode == "AlwaysAllow");
        let anonymous = anonymous(given, everyone_may, read)?;
        if everyone_may && anonymous == Anonymous::Nowhere && given.switch("anonymous-auth") != Some(false) {
            warnings.push("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer".to_owned());
        }
        let paths = |name: &str| given.each(name).map(PathBuf::from).collect::<Vec<_>>();
        let longest = given
            .time("service-account-max-token-expiration")
            .filter(|longest| !longest.is_zero())
            .map(|longest| i64::try_from(longest.as_secs()).unwrap_or(i64::MAX));
        let args = AccessArgs {
            authorization_mode: modes,
            anonymous_auth: anonymous != Anonymous::Nowhere,
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
        let access = Access::new(args, files, trust)?;
        let accounts = access.service_accounts(|| bail!("--service-account-signing-key-file is missing"))?;
        let anonymous_at = match anonymous {
            Anonymous::At(paths) => Some(paths),
            Anonymous::Everywhere | Anonymous::Nowhere => None,
        };
        Ok(Self { access, accounts, anonymous_at, warnings })
    }
}
