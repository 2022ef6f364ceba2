//! A kubeconfig with inline data only.

use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;

/// The reason why a kubeconfig is refused. It never quotes the kubeconfig, but for names of contexts, clusters and users.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotInline {
    /// The Secret has no such field.
    #[error("the Secret has no field {0:?}")]
    NoField(String),
    /// The text is no kubeconfig.
    #[error("it is no YAML of a kubeconfig")]
    NoKubeconfig,
    /// A part that is referred to is missing.
    #[error("it has no {0}")]
    Missing(String),
    /// A field names a file, or a program that gets credentials.
    #[error("{field} is not allowed: {reason}; give the data itself, such as {instead}")]
    Refused {
        /// The field.
        field: &'static str,
        /// The reason why it is not allowed.
        reason: &'static str,
        /// The fields with inline data.
        instead: &'static str,
    },
    /// The data cannot be used.
    #[error("{0}")]
    Unusable(String),
}

const FILE: &str = "it names a file of the program that reads it";
const COMMAND: &str = "it runs a command in the program that reads it";

/// A client by a kubeconfig with inline data only, of its current context or another one.
pub(super) async fn client(text: &str, context: Option<&str>) -> Result<Client, NotInline> {
    // The error of the parser has a part of the text.
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| NotInline::NoKubeconfig)?;
    let context = context.or(kubeconfig.current_context.as_deref()).unwrap_or_default().to_owned();
    let proxy = check(&kubeconfig, &context)?;
    let options = KubeConfigOptions { context: Some(context), ..KubeConfigOptions::default() };
    let unusable = |error: &dyn std::fmt::Display| NotInline::Unusable(error.to_string());
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unusable(&error))?;
    if !proxy {
        // That of the environment is for the program's own cluster.
        config.proxy_url = None;
    }
    Client::try_from(config).map_err(|error| unusable(&error))
}

/// Refuses a context whose cluster or user is not inline. Returns whether the cluster names a proxy.
fn check(kubeconfig: &Kubeconfig, context: &str) -> Result<bool, NotInline> {
    let missing = |what: &str, name: &str| NotInline::Missing(format!("{what} {name:?}"));
    let found = kubeconfig.contexts.iter().find(|named| named.name == context);
    let context =
        found.and_then(|named| named.context.as_ref()).ok_or_else(|| missing("context", context))?;
    let found = kubeconfig.clusters.iter().find(|named| named.name == context.cluster);
    let cluster =
        found.and_then(|named| named.cluster.as_ref()).ok_or_else(|| missing("cluster", &context.cluster))?;
    check_cluster(cluster)?;
    if let Some(user) = &context.user {
        let found = kubeconfig.auth_infos.iter().find(|named| named.name == *user);
        check_user(found.and_then(|named| named.auth_info.as_ref()).ok_or_else(|| missing("user", user))?)?;
    }
    Ok(cluster.proxy_url.as_deref().is_some_and(|url| !url.is_empty()))
}

fn check_cluster(cluster: &Cluster) -> Result<(), NotInline> {
    refuse_file(
        "certificate-authority",
        cluster.certificate_authority.as_deref(),
        "certificate-authority-data",
    )
}

fn check_user(user: &AuthInfo) -> Result<(), NotInline> {
    const INSTEAD: &str = "token or client-certificate-data with client-key-data";
    refuse_file("tokenFile", user.token_file.as_deref(), "token")?;
    refuse_file("client-certificate", user.client_certificate.as_deref(), "client-certificate-data")?;
    refuse_file("client-key", user.client_key.as_deref(), "client-key-data")?;
    for (field, is_present) in
        [("exec", user.exec.is_some()), ("auth-provider", user.auth_provider.is_some())]
    {
        if is_present {
            return Err(NotInline::Refused { field, reason: COMMAND, instead: INSTEAD });
        }
    }
    Ok(())
}

fn refuse_file(field: &'static str, value: Option<&str>, instead: &'static str) -> Result<(), NotInline> {
    match value {
        None | Some("") => Ok(()),
        Some(_) => Err(NotInline::Refused { field, reason: FILE, instead }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: k, user: u, namespace: n}}}}, {{name: d, context: {{cluster: k, user: nobody}}}}]\n\
             clusters: [{{name: k, cluster: {{server: 'https://192.0.2.1:6443', {cluster}}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    async fn refusal(cluster: &str, user: &str) -> String {
        client(&kubeconfig(cluster, user), None).await.err().expect("it is refused").to_string()
    }

    #[tokio::test]
    async fn inline_data_makes_a_client() {
        let made =
            client(&kubeconfig("insecure-skip-tls-verify: true", "token: s3cret"), None).await.unwrap();
        assert_eq!(made.default_namespace(), "n");
    }

    #[tokio::test]
    async fn files_and_commands_are_refused_by_name_and_without_their_values() {
        for (cluster, user, field) in [
            ("certificate-authority: /etc/s3cret", "token: s3cret", "certificate-authority"),
            ("", "tokenFile: /etc/s3cret", "tokenFile"),
            ("", "client-certificate: /etc/s3cret", "client-certificate"),
            ("", "client-key: /etc/s3cret", "client-key"),
            ("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: s3cret}", "exec"),
            ("", "auth-provider: {name: s3cret, config: {}}", "auth-provider"),
        ] {
            let text = refusal(cluster, user).await;
            assert!(text.starts_with(&format!("{field} is not allowed")), "{text}");
            assert!(!text.contains("s3cret"), "{text}");
        }
    }

    #[tokio::test]
    async fn broken_kubeconfigs_are_refused_without_their_text() {
        let text = |text: &'static str, context: Option<&'static str>| async move {
            client(text, context).await.err().unwrap().to_string()
        };
        assert_eq!(text("s3cret: [", None).await, "it is no YAML of a kubeconfig");
        assert_eq!(text("contexts: s3cret", None).await, "it is no YAML of a kubeconfig");
        assert_eq!(text("kind: Config", None).await, "it has no context \"\"");
        assert_eq!(text("kind: Config", Some("x")).await, "it has no context \"x\"");
        let whole = kubeconfig("", "token: s3cret");
        let nobody = client(&whole, Some("d")).await.err().unwrap().to_string();
        assert_eq!(nobody, "it has no user \"nobody\"");
        let bad = refusal("certificate-authority-data: '!s3cret'", "token: s3cret").await;
        assert!(!bad.contains("s3cret"), "{bad}");
    }
}
