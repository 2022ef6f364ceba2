//! Authentication: client certificates of the server's own CA and of another one, tokens, front proxies,
//! anonymous requests.

use std::{fs, path::Path, time::SystemTime};

use http::Request;
use kube::{Client, Config, config::Kubeconfig};
use process::{pki::Pki, signing::SigningKey};

use crate::{
    kubectl,
    server::{PATIENCE, Server},
};

/// The output of kubectl, also of a failure, without the kubeconfig's own credentials.
async fn attempt(server: &Server, data: &Path, credentials: &str) -> String {
    let authority = data.join("pki/ca.crt");
    let line = format!(
        "--kubeconfig=/dev/null --server=https://{} --certificate-authority={} {credentials} get namespace default",
        server.address,
        authority.display()
    );
    let output = kubectl::output(server, &line).await;
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn certificate(folder: &Path) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    format!("--client-certificate={} --client-key={}", file("admin.crt"), file("admin.key"))
}

#[tokio::test]
async fn certificates_and_tokens_are_verified_by_the_configured_cas_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for other in ["friend", "stranger"] {
        Pki::ensure(&path(other), "localhost", SystemTime::now()).unwrap();
    }
    fs::write(path("tokens.csv"), "t-admin,root,1,\"system:masters\"\nt-dev,jane,2,dev\n").unwrap();
    let (authority, tokens) = (path("friend/ca.crt"), path("tokens.csv"));
    let arguments =
        ["--client-ca-file", authority.to_str().unwrap(), "--token-auth-file", tokens.to_str().unwrap()];
    let data = path("data");
    let server = Server::start("serve", &data, &arguments).await;

    for (credentials, expected) in [
        (certificate(&data.join("pki")), "default "),
        (certificate(&path("friend")), "default "),
        (certificate(&path("stranger")), "Unauthorized"),
        ("--token=t-admin".to_owned(), "default "),
        ("--token=t-dev".to_owned(), "User \"jane\" cannot get resource \"namespaces\""),
        ("--token=wrong".to_owned(), "Unauthorized"),
    ] {
        let printed = attempt(&server, &data, &credentials).await;
        assert!(printed.contains(expected), "{credentials}: `{expected}` in {printed}");
    }
}

#[tokio::test]
async fn always_allow_rejects_anonymous_requests() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start("serve", &data, &["--authorization-mode", "AlwaysAllow"]).await;
    let printed = attempt(&server, &data, "--username=bad --password=wrong").await;
    assert!(printed.contains("You must be logged in to the server"), "{printed}");
    let printed = attempt(&server, &data, &certificate(&data.join("pki"))).await;
    assert!(printed.contains("default "), "{printed}");
}

/// Tries until the answer has this text.
async fn until(server: &Server, data: &Path, credentials: &str, expected: &str) {
    let tried = async { while !attempt(server, data, credentials).await.contains(expected) {} };
    let in_time = tokio::time::timeout(PATIENCE, tried).await;
    assert!(in_time.is_ok(), "{credentials}: never `{expected}`\n{}", server.log());
}

#[tokio::test]
async fn client_ca_and_token_files_are_reloaded_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for other in ["first", "second"] {
        Pki::ensure(&path(other), "localhost", SystemTime::now()).unwrap();
    }
    let (authority, tokens, data) = (path("ca.crt"), path("tokens.csv"), path("data"));
    fs::copy(path("first/ca.crt"), &authority).unwrap();
    fs::write(&tokens, "t-old,root,1,\"system:masters\"\n").unwrap();
    let arguments =
        ["--client-ca-file", authority.to_str().unwrap(), "--token-auth-file", tokens.to_str().unwrap()];
    let server = Server::start("serve", &data, &arguments).await;
    let [first, second] = ["first", "second"].map(|name| certificate(&path(name)));
    until(&server, &data, &first, "default ").await;
    until(&server, &data, &second, "Unauthorized").await;
    until(&server, &data, "--token=t-new", "Unauthorized").await;

    fs::copy(path("second/ca.crt"), &authority).unwrap();
    fs::write(&tokens, "t-new,root,1,\"system:masters\"\n").unwrap();
    until(&server, &data, &second, "default ").await;
    until(&server, &data, &first, "Unauthorized").await;
    until(&server, &data, "--token=t-new", "default ").await;
    until(&server, &data, "--token=t-old", "Unauthorized").await;

    fs::write(&tokens, "s3cret").unwrap();
    let failures = r#"orlop_file_automatic_reloads_total{file="token-auth-file",status="failure"}"#;
    let reported = async {
        while !kubectl::output(&server, "get --raw /metrics")
            .await
            .stdout
            .windows(failures.len())
            .any(|part| part == failures.as_bytes())
        {}
    };
    assert!(tokio::time::timeout(PATIENCE, reported).await.is_ok(), "{}", server.log());
    until(&server, &data, "--token=t-new", "default ").await;
    let log = server.log();
    assert!(
        log.contains("cannot reload changed files; the previous content stays in use")
            && !log.contains("s3cret"),
        "{log}"
    );
}

/// The server's answer to a front proxy with these certificates for a caller in `system:masters`.
async fn ask_as_proxy(server: &Server, proxy: &Path) -> String {
    // It has the CA of the server.
    let mut kubeconfig = Kubeconfig::read_from(&server.kubeconfig).expect("the kubeconfig is readable");
    let user = kubeconfig.auth_infos[0].auth_info.as_mut().expect("it has a user");
    (user.client_certificate_data, user.client_key_data) = (None, None);
    let file = |name: &str| Some(proxy.join(name).display().to_string());
    (user.client_certificate, user.client_key) = (file("admin.crt"), file("admin.key"));
    let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .expect("the kubeconfig is valid");
    let request = Request::get("/api/v1/namespaces/default")
        .header("x-remote-user", "jane")
        .header("x-remote-group", "system:masters");
    let answer = Client::try_from(config)
        .expect("the request is valid")
        .request_text(request.body(Vec::new()).expect("the request is valid"))
        .await;
    answer.unwrap_or_else(|error| error.to_string())
}

#[tokio::test]
async fn the_front_proxy_ca_is_reloaded_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for other in ["first", "second"] {
        Pki::ensure(&path(other), "localhost", SystemTime::now()).unwrap();
    }
    let (authority, data) = (path("proxies.crt"), path("data"));
    fs::copy(path("first/ca.crt"), &authority).unwrap();
    let arguments = [
        "--requestheader-client-ca-file",
        authority.to_str().unwrap(),
        "--requestheader-username-headers=x-remote-user",
        "--requestheader-group-headers=x-remote-group",
    ];
    let server = Server::start("serve", &data, &arguments).await;
    let is_believed =
        async |name: &str| ask_as_proxy(&server, &path(name)).await.contains("\"kind\":\"Namespace\"");
    assert!(is_believed("first").await && !is_believed("second").await);
    fs::copy(path("second/ca.crt"), &authority).unwrap();
    let reloaded = async { while !is_believed("second").await {} };
    assert!(tokio::time::timeout(PATIENCE, reloaded).await.is_ok(), "{}", server.log());
    assert!(!is_believed("first").await);
}

#[tokio::test]
async fn service_account_keys_are_reloaded_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (keys, data) = (path("keys.pem"), path("data"));
    for key in [keys.clone(), path("other.key")] {
        SigningKey::ensure(&key).unwrap();
    }
    let arguments = ["--controllers=", "--service-account-key-file", keys.to_str().unwrap()];
    let server = Server::start("serve", &data, &arguments).await;
    kubectl::run(&server, "create serviceaccount default").await;
    let token = kubectl::run(&server, "create token default").await;
    let token = format!("--token={}", token.trim());
    until(&server, &data, &token, "You must be logged in to the server").await;
    fs::copy(data.join("pki/sa.key"), &keys).unwrap();
    until(&server, &data, &token, "User \"system:serviceaccount:default:default\" cannot get").await;
    fs::copy(path("other.key"), &keys).unwrap();
    until(&server, &data, &token, "You must be logged in to the server").await;
}

#[tokio::test]
async fn admission_plugins_are_configured_by_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("admission.yaml"));
    let security = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, \
                    defaults: {enforce: baseline}}";
    let plugins = format!("[{{name: PodSecurity, configuration: {security}}}]");
    let kind = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration";
    fs::write(&file, format!("{kind}\nplugins: {plugins}\n")).unwrap();
    let arguments = ["--controllers=", "--admission-control-config-file", file.to_str().unwrap()];
    let server = Server::start("up", &data, &arguments).await;
    kubectl::run(&server, "create serviceaccount default").await;
    let pod = async |is_privileged: bool| {
        let line = format!("run p --image=i --privileged={is_privileged}");
        String::from_utf8(kubectl::output(&server, &line).await.stderr).unwrap()
    };
    let refused = pod(true).await;
    assert!(refused.contains("violates PodSecurity \"baseline:latest\""), "{refused}");
    assert_eq!(pod(false).await, "");
}
