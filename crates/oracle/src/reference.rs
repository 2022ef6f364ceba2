//! A real kube-apiserver with etcd, and kube-controller-manager if a script needs it, for the time of a
//! recording.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use oracle::{AuditEvents, Request, ServerSettings};

use super::curl::Curl;

/// The time limit for the server to become ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// The feature gate for APIs that are not served by default.
const GATES: &str = "--feature-gates=MutatingAdmissionPolicy=true";

/// A running server; it stops when this value is dropped.
pub struct ReferenceServer {
    pub url: String,
    pub token: String,
    processes: Vec<Child>,
    data: PathBuf,
    /// The audit log, if the settings ask for one.
    pub events: Option<AuditEvents>,
}

impl ReferenceServer {
    /// Starts the programs `etcd` and `kube-apiserver` of a folder with the settings of a script. An API that
    /// is not served by default also needs its feature gate.
    pub fn start(assets: &Path, setting: &ServerSettings) -> Result<Self, String> {
        let data = std::env::temp_dir().join(format!("oracle-{}", std::process::id()));
        let token = "admin-token".to_owned();
        let [port, clients, peers] = [free_port()?, free_port()?, free_port()?];
        let url = format!("https://127.0.0.1:{port}");
        let mut reference = Self { url, token, processes: Vec::new(), data, events: None };
        reference.prepare()?;
        let etcd = [
            format!("--data-dir={}", reference.data.join("etcd").display()),
            format!("--listen-client-urls=http://127.0.0.1:{clients}"),
            format!("--advertise-client-urls=http://127.0.0.1:{clients}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peers}"),
        ];
        reference.spawn(&assets.join("etcd"), &etcd)?;
        let key = reference.data.join("sa.key").display().to_string();
        let asked = reference.asked(setting)?;
        let server = [
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", reference.data.display()),
            format!("--etcd-servers=http://127.0.0.1:{clients}"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            format!("--token-auth-file={}", reference.data.join("tokens.csv").display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={key}"),
            format!("--service-account-signing-key-file={key}"),
        ];
        let server: Vec<String> = server.into_iter().chain(asked).collect();
        reference.spawn(&assets.join("kube-apiserver"), &server)?;
        reference.wait("/readyz")?;
        if setting.controllers {
            reference.start_controllers(&assets.join("kube-controller-manager"))?;
        }
        Ok(reference)
    }

    /// The flags for the settings of a script.
    fn asked(&mut self, setting: &ServerSettings) -> Result<Vec<String>, String> {
        let mut flags = Vec::new();
        if let Some(api) = &setting.serves {
            flags.extend([format!("--runtime-config={api}=true"), GATES.to_owned()]);
        }
        flags.extend(setting.plugins.iter().map(|names| format!("--enable-admission-plugins={names}")));
        if let Some(policy) = &setting.audit {
            let [file, log] = ["policy.yaml", "audit.log"].map(|name| self.data.join(name));
            fs::write(&file, policy).map_err(|error| format!("{}: {error}", file.display()))?;
            flags.push(format!("--audit-policy-file={}", file.display()));
            flags.push(format!("--audit-log-path={}", log.display()));
            self.events = Some(AuditEvents::new(log));
        }
        Ok(flags)
    }

    /// Starts kube-controller-manager with a service account per controller, as usual in clusters.
    fn start_controllers(&mut self, program: &Path) -> Result<(), String> {
        let kubeconfig = self.data.join("kubeconfig");
        let (url, token) = (&self.url, &self.token);
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: it, contexts: [{{name: it, context: {{cluster: it, user: it}}}}], \
             users: [{{name: it, user: {{token: {token}}}}}], \
             clusters: [{{name: it, cluster: {{server: \"{url}\", insecure-skip-tls-verify: true}}}}]}}"
        );
        fs::write(&kubeconfig, text).map_err(|error| format!("{}: {error}", kubeconfig.display()))?;
        let [certificate, key] = ["ca.crt", "ca.key"].map(|name| self.data.join(name).display().to_string());
        let paths = ["-keyout", &key, "-out", &certificate];
        openssl(
            &[&["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=oracle"], &paths[..]].concat(),
        )?;
        let flags = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--secure-port={}", free_port()?),
            format!("--cert-dir={}", self.data.display()),
            "--leader-elect=false".to_owned(),
            "--controllers=*".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            format!("--root-ca-file={certificate}"),
            format!("--service-account-private-key-file={}", self.data.join("sa.key").display()),
            format!("--cluster-signing-cert-file={certificate}"),
            format!("--cluster-signing-key-file={key}"),
        ];
        self.spawn(program, &flags)?;
        // Objects that two of the controllers create in every namespace.
        let default = "/api/v1/namespaces/default";
        self.wait(&format!("{default}/serviceaccounts/default"))?;
        self.wait(&format!("{default}/configmaps/kube-root-ca.crt"))
    }

    fn prepare(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.data.display());
        fs::create_dir_all(&self.data).map_err(failed)?;
        let tokens = format!("{},admin,admin,system:masters\n", self.token);
        fs::write(self.data.join("tokens.csv"), tokens).map_err(failed)?;
        openssl(&["genrsa", "-out", &self.data.join("sa.key").display().to_string(), "2048"])
    }

    fn spawn(&mut self, program: &Path, arguments: &[String]) -> Result<(), String> {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
        self.processes.push(child);
        Ok(())
    }

    /// Polls a path until it is found: the server is ready, or a controller has created an object.
    fn wait(&mut self, path: &str) -> Result<(), String> {
        let begin = Instant::now();
        let server = Curl::new(&self.url, &self.token);
        let (path, headers) = (path.to_owned(), Vec::new());
        let ready = Request { method: "GET", path, headers, body: Vec::new(), lines: None };
        while begin.elapsed() < PATIENCE {
            if server.send(&ready).is_ok_and(|response| response.code == 200) {
                return Ok(());
            }
            for process in &mut self.processes {
                if let Ok(Some(status)) = process.try_wait() {
                    return Err(format!("a process of the reference server ended: {status}"));
                }
            }
        }
        Err("the reference server did not become ready".to_owned())
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        // Newest first: kube-apiserver hangs without etcd.
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.data);
    }
}

fn openssl(arguments: &[&str]) -> Result<(), String> {
    match Command::new("openssl").args(arguments).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("cannot run `openssl {}`", arguments.join(" "))),
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
