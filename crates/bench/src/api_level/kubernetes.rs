//! kube-apiserver with etcd, for comparison.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result};
use process::pki::Pki;
use serde_json::json;
use tokio::process::{Child, Command};

use super::server::until_answered;
use super::{Credentials, Endpoint, Server};

/// A folder with the two programs.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    assets: PathBuf,
}

impl Kubernetes {
    /// Uses the programs of a folder.
    pub fn new(assets: &Path) -> Self {
        Self { assets: assets.to_owned() }
    }

    /// The paths of the programs.
    pub fn programs(&self) -> [PathBuf; 2] {
        ["etcd", "kube-apiserver"].map(|program| self.assets.join(program))
    }

    /// Starts both and waits for the first response. Its certificates are like Orlop's, so that TLS costs the
    /// same.
    pub async fn start(&self, folder: &Path) -> Result<Server> {
        std::fs::create_dir_all(folder)?;
        let pki = Pki::ensure(&folder.join("pki"), "127.0.0.1", SystemTime::now())?;
        let files = Files::write(folder, &pki)?;
        let [client, peer, port] = free_ports()?;
        let begin = Instant::now();
        let etcd = self.etcd(folder, client, peer)?;
        let mut server = self.kube_apiserver(folder, &files, client, port)?;
        let credentials = Credentials { ca: pki.ca, certificate: pki.admin.certificate, key: pki.admin.key };
        let endpoint = Endpoint::new(&format!("127.0.0.1:{port}"), &credentials)?;
        let log = folder.join("kube-apiserver.log");
        until_answered(&endpoint, &mut server).await.with_context(|| last_line(&log))?;
        // etcd is stopped last: kube-apiserver hangs without it.
        Ok(Server::new(endpoint, begin.elapsed(), vec![etcd, server]))
    }

    /// Starts kube-controller-manager with the namespace and garbage collector controllers, if the program
    /// exists. Its client rate limit is raised: by default it waits far more than it works.
    pub fn start_controllers(&self, folder: &Path, address: &str) -> Result<Option<Child>> {
        let program = self.assets.join("kube-controller-manager");
        if !program.exists() {
            return Ok(None);
        }
        let pki = folder.join("pki");
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "bench",
                "cluster": {"server": format!("https://{address}"), "certificate-authority": folder.join("ca.crt")},
            }],
            "users": [{
                "name": "bench",
                "user": {"client-certificate": pki.join("admin.crt"), "client-key": pki.join("admin.key")},
            }],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "current-context": "bench",
        });
        let path = folder.join("controllers.json");
        std::fs::write(&path, kubeconfig.to_string())?;
        let mut controllers = Command::new(program);
        controllers.arg("--kubeconfig").arg(path);
        controllers.args(["--leader-elect=false", "--secure-port=0"]);
        controllers.arg("--controllers=garbage-collector-controller,namespace-controller");
        controllers.args(["--kube-api-qps=10000", "--kube-api-burst=10000"]);
        Ok(Some(spawn(controllers, &folder.join("kube-controller-manager.log"))?))
    }

    fn etcd(&self, folder: &Path, client: u16, peer: u16) -> Result<Child> {
        let mut etcd = Command::new(self.assets.join("etcd"));
        let client = format!("http://127.0.0.1:{client}");
        etcd.arg("--data-dir").arg(folder.join("etcd")).args(["--log-level", "error"]);
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &format!("http://127.0.0.1:{peer}")]);
        spawn(etcd, &folder.join("etcd.log"))
    }

    fn kube_apiserver(&self, folder: &Path, files: &Files, etcd: u16, port: u16) -> Result<Child> {
        let mut server = Command::new(self.assets.join("kube-apiserver"));
        for (flag, file) in [
            ("--client-ca-file", &files.ca),
            ("--tls-cert-file", &files.certificate),
            ("--tls-private-key-file", &files.key),
            ("--service-account-key-file", &files.certificate),
            ("--service-account-signing-key-file", &files.key),
        ] {
            server.arg(flag).arg(file);
        }
        server.args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")]);
        server.arg(format!("--etcd-servers=http://127.0.0.1:{etcd}"));
        server.args(["--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC"]);
        server.arg("--service-account-issuer=https://kubernetes.default.svc");
        spawn(server, &folder.join("kube-apiserver.log"))
    }
}

/// The files that kube-apiserver reads at its start.
struct Files {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn write(folder: &Path, pki: &Pki) -> Result<Self> {
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        Ok(Self {
            ca: write("ca.crt", &pki.ca)?,
            certificate: write("server.crt", &pki.server.certificate)?,
            key: write("server.key", &pki.server.key)?,
        })
    }
}

/// The last line of a program's log.
fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("it said nothing").to_owned()
}

fn spawn(mut command: Command, log: &Path) -> Result<Child> {
    let file = File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).kill_on_drop(true);
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    command.spawn().with_context(|| format!("{program} cannot be run"))
}

/// Opens all listeners at once, so that the ports differ.
fn free_ports() -> Result<[u16; 3]> {
    let listeners = [
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    ];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
