//! All scenarios against a real kube-apiserver, where there is one.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::run_all;
use crate::{kube_rs, server::PATIENCE};

/// The environment variable with a folder of `etcd` and `kube-apiserver`.
const ASSETS: &str = "FRAMEWORK_ASSETS";

/// An etcd and a kube-apiserver, killed when dropped.
struct Reference {
    kubeconfig: PathBuf,
    _processes: Vec<Child>,
    _folder: TempDir,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}

fn start(program: &Path, log: &Path, arguments: &[String]) -> Child {
    let log = fs::File::create(log).expect("the folder is there");
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

impl Reference {
    async fn start(assets: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = |name: &str| folder.path().join(name);
        let [port, clients, peers] = [free_port(), free_port(), free_port()];
        let etcd = [
            format!("--data-dir={}", path("etcd").display()),
            format!("--listen-client-urls=http://127.0.0.1:{clients}"),
            format!("--advertise-client-urls=http://127.0.0.1:{clients}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peers}"),
        ];
        let etcd = start(&assets.join("etcd"), &path("etcd.log"), &etcd);
        fs::write(path("tokens.csv"), "admin-token,admin,admin,system:masters\n")
            .expect("the folder is there");
        let accounts =
            process::pki::serving_pair("127.0.0.1", std::time::SystemTime::now()).expect("a key can be made");
        fs::write(path("sa.crt"), accounts.certificate).expect("the folder is there");
        fs::write(path("sa.key"), accounts.key).expect("the folder is there");
        let server = [
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", folder.path().display()),
            format!("--etcd-servers=http://127.0.0.1:{clients}"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            format!("--token-auth-file={}", path("tokens.csv").display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", path("sa.crt").display()),
            format!("--service-account-signing-key-file={}", path("sa.key").display()),
            // No controller makes the account that this plugin asks for.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        let server = start(&assets.join("kube-apiserver"), &path("kube-apiserver.log"), &server);
        let kubeconfig = path("kubeconfig");
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: it, contexts: [{{name: it, context: {{cluster: it, user: it}}}}], \
             users: [{{name: it, user: {{token: admin-token}}}}], \
             clusters: [{{name: it, cluster: {{server: \"https://127.0.0.1:{port}\", insecure-skip-tls-verify: true}}}}]}}"
        );
        fs::write(&kubeconfig, text).expect("the folder is there");
        let reference = Self { kubeconfig, _processes: vec![etcd, server], _folder: folder };
        let client = kube_rs::client_of(&reference.kubeconfig).await;
        let ready = async {
            let request = || http::Request::get("/readyz").body(Vec::new()).expect("the path is one");
            while client.request_text(request()).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        if timeout(PATIENCE, ready).await.is_err() {
            let log = reference.kubeconfig.with_file_name("kube-apiserver.log");
            panic!("kube-apiserver is not ready: {}", fs::read_to_string(log).unwrap_or_default());
        }
        reference
    }
}

#[tokio::test]
async fn every_scenario_passes_against_a_kube_apiserver() {
    let Some(assets) = test_tools::named_by(ASSETS) else { return };
    let reference = Reference::start(&assets).await;
    run_all(&reference.kubeconfig).await;
}
