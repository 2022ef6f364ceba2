//! A server in memory for the requests of scripts.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use apiserver::ApiServer;
use apiserver::admission::Switches;
use apiserver::audit::{Audit, Log, Rotation};
use apiserver::auth::{Authentication, Connection, Identity, StaticToken};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kinds::audit::Policy;
use oracle::{AuditEvents, Request, Response, ServerSettings};
use store::{Metrics, Options, Store};

/// Longer than any request takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server and its administrator.
pub struct Server {
    api: ApiServer,
    admin: Identity,
    audited: Option<Audited>,
}

/// An audit log in a temporary file.
struct Audited {
    log: Arc<Log>,
    events: AuditEvents,
    _file: tempfile::NamedTempFile,
}

impl Audited {
    fn start() -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Arc::new(Log::open(file.path(), Rotation::default()).unwrap());
        Self { log, events: AuditEvents::new(file.path().to_owned()), _file: file }
    }
}

impl Server {
    /// A fresh server with the settings of a script.
    pub async fn start(setting: &ServerSettings) -> Self {
        let engine = Arc::new(store::sqlite::Sqlite::in_memory().unwrap());
        let options = Options { compaction: None, ..Options::default() };
        let store = Store::open(engine, options, &Metrics::unregistered()).await.unwrap();
        let mut admin = Identity::authenticated("admin", ["system:masters".to_owned()]);
        admin.uid = "admin".to_owned();
        let token = StaticToken { token: "admin-token".to_owned(), identity: admin.clone() };
        let authentication = Authentication::new(vec![token]);
        let mut builder = ApiServer::builder(store).authentication(authentication);
        if let Some((group, version)) = setting.serves.as_deref().and_then(|api| api.split_once('/')) {
            assert!(builder.serve_on_request(group, version), "{group}/{version} cannot be asked for");
        }
        let plugins: Vec<String> =
            setting.plugins.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect();
        let plugins = Switches::kubernetes().with(&plugins, &[]).unwrap();
        let audited = setting.audit.as_ref().map(|_| Audited::start());
        if let (Some(audited), Some(policy)) = (&audited, &setting.audit) {
            let policy = Policy::read(policy.as_bytes()).unwrap();
            builder = builder.audit(Audit::new(policy, audited.log.clone()));
        }
        let api = builder.admission_plugins(plugins).build().await.unwrap();
        api.ready().await;
        Self { api, admin, audited }
    }

    /// Sends a request and reads the response, or as many lines as requested.
    pub async fn send(&self, request: &Request) -> Response {
        if let Some(Audited { log, events, .. }) =
            self.audited.as_ref().filter(|_| AuditEvents::handles(request))
        {
            log.flush();
            return events.answer(request).unwrap();
        }
        self.try_send(request).await.unwrap_or_else(|problem| panic!("{}: {problem}", request.path))
    }

    /// Like [`Server::send`], for requests that may not be valid HTTP.
    pub async fn try_send(&self, request: &Request) -> Result<Response, http::Error> {
        let mut builder = http::Request::builder().method(request.method).uri(&request.path);
        if !request.headers.iter().any(|(key, _)| key == "user-agent") {
            builder = builder.header("user-agent", "oracle");
        }
        for (key, value) in request.headers.iter().filter(|(_, value)| !value.is_empty()) {
            builder = builder.header(key, value);
        }
        let wire = builder.extension(IpAddr::from([127, 0, 0, 1]));
        let wire = wire.body(Full::new(Bytes::copy_from_slice(&request.body)))?;
        let is_own = request.headers.iter().any(|(key, _)| key == "authorization");
        let connection = if is_own { Connection::Bare } else { Connection::InProcess(self.admin.clone()) };
        let exchange = async {
            let (head, mut body) = self.api.answer(&connection, wire).await.into_parts();
            let lines = request.lines.filter(|_| head.status.is_success()).unwrap_or(usize::MAX);
            let mut bytes = Vec::new();
            let complete = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() >= lines;
            while !complete(&bytes) {
                let Some(frame) = body.frame().await else { break };
                bytes.extend_from_slice(&frame.unwrap().into_data().unwrap());
            }
            let headers = head.headers.iter();
            let headers = headers.map(|(key, value)| {
                (key.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            });
            Response { code: head.status.as_u16(), headers: headers.collect(), body: bytes }
        };
        let answered = tokio::time::timeout(PATIENCE, exchange).await;
        Ok(answered.unwrap_or_else(|_| panic!("{} {} hangs", request.method, request.path)))
    }
}
