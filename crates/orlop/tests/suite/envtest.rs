//! The program under the names `kube-apiserver` and `etcd`, started as launchers of test environments start them.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime},
};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use process::pki::Pki;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use crate::server::PATIENCE;

/// Interval at which launchers check whether a process is up.
const POLL: Duration = Duration::from_millis(10);

/// A folder with the two names, and certificates as a launcher creates them.
pub struct Assets {
    folder: TempDir,
    pub pki: Pki,
}

impl Assets {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        for name in ["kube-apiserver", "etcd"] {
            symlink(env!("CARGO_BIN_EXE_orlop"), folder.path().join(name)).expect("the folder is empty");
        }
        let pki = Pki::ensure(&folder.path().join("pki"), "127.0.0.1", SystemTime::now())
            .expect("the folder is ours");
        Self { folder, pki }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub fn start(&self, name: &str, arguments: &[String]) -> Process {
        let log = self.path(&format!("{name}-{}.log", free_port()));
        let output = fs::File::create(&log).expect("the folder is ours");
        let child = Command::new(self.path(name))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a file can be shared"))
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary was built with this test");
        Process { child, log }
    }

    /// Starts `etcd` with its data in a folder, and waits for its health.
    pub async fn etcd(&self, folder: &str) -> Etcd {
        let url = format!("http://127.0.0.1:{}", free_port());
        let arguments = [
            format!("--advertise-client-urls={url}"),
            format!("--data-dir={}", self.text(folder)),
            format!("--listen-client-urls={url}"),
            "--listen-peer-urls=http://localhost:0".to_owned(),
            "--unsafe-no-fsync=true".to_owned(),
        ];
        let mut process = self.start("etcd", &arguments);
        let address = url.trim_start_matches("http://");
        while get(address, "/health").await.is_none_or(|answer| !answer.ends_with(HEALTHY)) {
            process.must_run();
            tokio::time::sleep(POLL).await;
        }
        Etcd { process, url }
    }

    /// Starts `kube-apiserver` on that, and waits until a client can read the namespace `default`.
    pub async fn server(&self, etcd: &str, more: &[&str]) -> Server {
        let port = free_port();
        let certificates = self.path(&format!("certs-{port}"));
        fs::create_dir(&certificates).expect("no server had this port before");
        let file = |name: &str, text: &str| {
            fs::write(certificates.join(name), text).expect("the folder is ours");
            certificates.join(name).display().to_string()
        };
        file("apiserver.crt", &self.pki.server.certificate);
        file("apiserver.key", &self.pki.server.key);
        // In front: of several issuers the first one signs.
        let mut arguments: Vec<_> = more.iter().map(|&argument| argument.to_owned()).collect();
        arguments.extend([
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", certificates.display()),
            format!("--client-ca-file={}", file("client-cert-auth-ca.crt", &self.pki.ca)),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--etcd-servers={etcd}"),
            format!("--secure-port={port}"),
            format!("--service-account-issuer=https://127.0.0.1:{port}/"),
            format!("--service-account-key-file={}", file("sa-signer.crt", &self.pki.admin.certificate)),
            format!("--service-account-signing-key-file={}", file("sa-signer.key", &self.pki.admin.key)),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        ]);
        let mut process = self.start("kube-apiserver", &arguments);
        let client = self.client(port).await;
        while Api::<Namespace>::all(client.clone()).get("default").await.is_err() {
            process.must_run();
            tokio::time::sleep(POLL).await;
        }
        Server { process, client, port }
    }

    /// A client with the administrator's certificate.
    async fn client(&self, port: u16) -> Client {
        let Pki { admin, .. } = &self.pki;
        fs::write(self.path("admin.pem"), &admin.certificate).expect("the folder is ours");
        fs::write(self.path("admin.key.pem"), &admin.key).expect("the folder is ours");
        let (certificate, key) = (self.text("admin.pem"), self.text("admin.key.pem"));
        self.client_of(port, &format!("{{client-certificate: {certificate}, client-key: {key}}}")).await
    }

    /// A client with this token, or with nothing.
    pub async fn client_with_token(&self, port: u16, token: &str) -> Client {
        let user = if token.is_empty() { "{}".to_owned() } else { format!("{{token: {token}}}") };
        self.client_of(port, &user).await
    }

    /// A client that trusts the launcher's CA.
    async fn client_of(&self, port: u16, user: &str) -> Client {
        fs::write(self.path("ca.pem"), &self.pki.ca).expect("the folder is ours");
        let yaml = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: {}}}}}], \
             users: [{{name: u, user: {user}}}]}}",
            self.text("ca.pem"),
        );
        let kubeconfig = Kubeconfig::from_yaml(&yaml).expect("this is one");
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Client::try_from(config.expect("it names a context")).expect("its certificates can be used")
    }
}

pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub fn must_run(&mut self) {
        let ended = self.child.try_wait().expect("it can be waited for");
        assert!(ended.is_none(), "{ended:?}: {}", self.log());
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is there")
    }

    pub async fn send(&self, signal: &str) {
        let id = self.child.id().expect("it has not been waited for").to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().await.expect("kill can be run");
        assert!(sent.success());
    }

    pub async fn stop(&mut self, signal: &str) -> ExitStatus {
        self.send(signal).await;
        timeout(PATIENCE, self.child.wait()).await.expect("it ends").expect("it can be waited for")
    }
}

pub struct Etcd {
    pub process: Process,
    pub url: String,
}

pub struct Server {
    pub process: Process,
    pub client: Client,
    pub port: u16,
}

impl Server {
    pub fn configmaps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub async fn create(&self, name: &str) {
        self.try_to_create(name).await.expect("the name is free");
    }

    pub async fn try_to_create(&self, name: &str) -> kube::Result<ConfigMap> {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        self.configmaps().create(&PostParams::default(), &object).await
    }

    pub async fn names(&self) -> Vec<String> {
        let list = self.configmaps().list(&ListParams::default()).await.expect("it can be listed");
        let names = list.items.into_iter().filter_map(|object| object.metadata.name);
        names.filter(|name| name != "kube-root-ca.crt").collect()
    }
}

const HEALTHY: &str = r#"{"health":"true","reason":""}"#;

/// A free port, each time another one. It is outside of the ephemeral range: another test could take it
/// before the process binds it.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const MANY: u32 = 20_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Other processes that run these tests start elsewhere.
    let start = std::process::id().wrapping_mul(101);
    let next = || FIRST + start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % MANY;
    let ports = std::iter::repeat_with(|| u16::try_from(next()).expect("it is small"));
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.take(MANY as usize).find(is_free).expect("there are free ports")
}

/// An answer over plain HTTP, head and body.
async fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// Runs a program to its end: exit code, output and errors.
pub async fn run(program: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(PATIENCE, output).await.expect("it ends").expect("it can be run");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}
