//! The audit trail of one request: collects its event and writes it at each stage.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use http::{HeaderValue, Request, Response};
use jiff::Timestamp;
use kinds::audit::{
    Attributes, AuditTarget, Event, Extent, Level, ObjectReference, Stage, User, without_managers,
};
use model::error::Error;
use serde_json::{Value, json};

use super::log::{Mode, Written, written_to_file};
use super::response::{AuditedStream, response_object};
use super::{Audit, source};
use crate::auth::{Decision, Identity};
use crate::body::Body;
use crate::pipeline::{RequestInfo, named_by_selector};
use crate::request::path::ResourcePath;
use crate::request::query::Query;
use crate::request::verb::Verb;
use crate::verbs::nodes;

/// The header with the audit ID.
pub(crate) const ID: &str = "audit-id";

/// The audit trail of a request. Clones share it; dropping the last clone writes the last event. Empty without an audit log.
#[derive(Clone, Default)]
pub(crate) struct Trail(Option<Arc<TrailState>>);

struct TrailState {
    audit: Arc<Audit>,
    kind: ResponseKind,
    /// Set after authentication.
    extent: OnceLock<Extent>,
    event: Mutex<Event>,
    /// Resolves when the event that was added last is written; earlier ones are written by then.
    last: Mutex<Option<Written>>,
}

/// Properties of the request that decide about its response events.
#[derive(Clone, Copy, Default)]
struct ResponseKind {
    /// The response is long-running and has two events.
    is_long: bool,
    /// The response is no object.
    is_opaque: bool,
    /// The response may be a `Status` without an error.
    may_be_status: bool,
    /// A product serves the request in its own format.
    is_mounted: bool,
}

impl Trail {
    /// Begins the trail of a request.
    pub fn begin<B>(
        audit: Option<&Arc<Audit>>,
        request: &Request<B>,
        info: &Result<RequestInfo, Error>,
    ) -> Self {
        let Some(audit) = audit else { return Self::default() };
        let headers = request.headers();
        let given = headers.get(ID).and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
        let mut event = Event {
            id: given.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned),
            uri: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            sources: source::addresses(headers, request.extensions().get::<IpAddr>().copied()),
            agent: source::agent(headers),
            received: time(),
            ..Event::default()
        };
        let kind = match info {
            Ok(RequestInfo::Resource { verb, path }) => {
                event.verb = verb.to_string();
                let query = Query::parse(request.uri().query().unwrap_or(""));
                let named = named_by_selector(*verb, path, &query);
                event.object = Some(reference(named.as_ref().unwrap_or(path)));
                ResponseKind::of(*verb, path)
            }
            Ok(RequestInfo::UnsupportedMethod { verb, path }) => {
                event.verb = (*verb).to_owned();
                event.object = Some(reference(path));
                ResponseKind::default()
            }
            Ok(RequestInfo::Plain { method, path }) => {
                event.verb.clone_from(method);
                let is_discovery = ["/api", "/apis"].iter().any(|root| path.starts_with(root));
                ResponseKind { is_opaque: !is_discovery, ..ResponseKind::default() }
            }
            Ok(RequestInfo::Mounted { method, .. }) => {
                event.verb.clone_from(method);
                ResponseKind { is_opaque: true, is_mounted: true, ..ResponseKind::default() }
            }
            Err(_) => {
                event.verb = request.method().as_str().to_lowercase();
                ResponseKind { is_opaque: true, ..ResponseKind::default() }
            }
        };
        let (extent, event, last) = (OnceLock::new(), Mutex::new(event), Mutex::default());
        Self(Some(Arc::new(TrailState { audit: Arc::clone(audit), kind, extent, event, last })))
    }

    /// Sets the authenticated user, evaluates the policy, and waits until the log has room.
    ///
    /// # Errors
    /// The first event could not be written in the mode `blocking-strict`.
    pub async fn identify(&self, caller: &Identity) -> Result<(), Error> {
        let Some(state) = &self.0 else { return Ok(()) };
        state.event().user = user(caller);
        if state.extent().level == Level::None {
            return Ok(());
        }
        state.audit.log.room().await;
        state.write(Stage::RequestReceived);
        if state.audit.log.mode() == Mode::BlockingStrict && !written_to_file(state.take_last()).await {
            return Err(Error::internal("failed to store audit event"));
        }
        Ok(())
    }

    /// Adds the last event of a request whose response is complete.
    pub(super) fn complete(&self) {
        if let Some(state) = &self.0 {
            state.complete();
        }
    }

    /// Adds the last event of a complete response and waits until it is written. A streamed response does that at its end.
    pub async fn settle(&self, is_whole: bool) {
        let Some(state) = &self.0 else { return };
        if is_whole {
            state.complete();
            written_to_file(state.take_last()).await;
        }
    }

    /// Resolves when the last event is written.
    pub(super) fn take_last(&self) -> Option<Written> {
        self.0.as_ref().and_then(|state| state.take_last())
    }

    /// Sets the impersonated user.
    pub fn act_as(&self, caller: &Identity) {
        self.visit(|event| {
            event.impersonated = Some(user(caller));
        });
    }

    /// Records the authorization decision.
    pub fn decided(&self, decision: &Decision) {
        let (word, reason) = match decision {
            Decision::Allow { reason } => ("allow", reason),
            Decision::Deny { reason } | Decision::NoOpinion { reason } => ("forbid", reason),
        };
        self.annotate("authorization.k8s.io/decision", || word.to_owned());
        self.annotate("authorization.k8s.io/reason", || reason.clone());
    }

    /// Adds an annotation; the first value of a key stays.
    pub fn annotate(&self, key: &str, value: impl FnOnce() -> String) {
        self.visit(|event| {
            if !event.annotations.contains_key(key) {
                event.annotations.insert(key.to_owned(), value());
            }
        });
    }

    /// The audit level of the request.
    pub fn level(&self) -> Level {
        self.0.as_ref().map_or(Level::None, |state| state.extent().level)
    }

    /// Records the request object; its metadata completes the object reference, for instance with a generated name.
    pub fn sent(&self, metadata: Option<&Value>, object: impl FnOnce() -> Value) {
        let Some(state) = &self.0 else { return };
        let omits_managers = state.extent().omits_managers;
        self.visit(|event| {
            if let (Some(reference), Some(metadata)) = (&mut event.object, metadata) {
                reference.complete(metadata);
            }
            let sent = (event.level >= Level::Request).then(object);
            event.request = sent.map(|sent| if omits_managers { without_managers(sent) } else { sent });
        });
    }

    /// Records a response that is not compressed yet.
    pub async fn answered(&self, response: Response<Body>) -> Response<Body> {
        let Some(state) = self.0.as_ref().filter(|_| self.level() != Level::None) else { return response };
        let (head, body) = response.into_parts();
        let is_shown = self.level() == Level::RequestResponse && !state.kind.is_opaque;
        state.event().status = Some(json!({"metadata": {}, "code": head.status.as_u16()}));
        // Only the response tells whether a mount streams.
        let is_long = state.kind.is_long || state.kind.is_mounted && !body.is_whole();
        let body = match body {
            Body::Full(bytes) => {
                if is_shown || state.kind.may_be_status {
                    self.note_response(response_object(&head.headers, &bytes));
                }
                Body::Full(bytes)
            }
            chunks => {
                let headers = is_shown.then(|| head.headers.clone());
                Body::stream(AuditedStream::new(chunks, headers, self.clone()))
            }
        };
        if is_long {
            state.write(Stage::ResponseStarted);
            written_to_file(state.take_last()).await;
        }
        Response::from_parts(head, body)
    }

    /// Records a failed request and its status code.
    pub fn failed(&self, error: &Error, code: u16) {
        let Some(state) = &self.0 else { return };
        let is_anonymous = state.extent.get().is_none();
        if state.extent().level == Level::None {
            return;
        }
        match error {
            Error::NoSuchPage => state.event().status = Some(json!({"metadata": {}, "code": code})),
            // The client gets no `Status`, so the event has none as response object.
            _ if state.kind.is_mounted => state.event().status = Some(summary(&error.status(), code.into())),
            _ => self.note_response(Some(error.status())),
        }
        // A request that failed before authentication has no further events.
        if is_anonymous || state.kind.is_long {
            state.write(Stage::ResponseStarted);
        }
        if is_anonymous {
            state.event().level = Level::None;
        }
    }

    /// Records a panic while the response is written.
    pub(super) fn panicked(&self) {
        if let Some(state) = &self.0 {
            state.panicked();
        }
    }

    /// Adds the last event of a request that panicked, and waits until it is written: the 500 is sent after it.
    pub async fn settle_panic(&self) {
        self.panicked();
        written_to_file(self.take_last()).await;
    }

    /// Records the response object.
    pub(super) fn note_response(&self, response_object: Option<Value>) {
        let Some(response_object) = response_object else { return };
        let Some(state) = &self.0 else { return };
        let omits_managers = state.extent().omits_managers;
        self.visit(|event| {
            if response_object["kind"] == "Status" {
                let code = event.status.as_ref().map_or(Value::Null, |status| status["code"].clone());
                event.status = Some(summary(&response_object, code));
            }
            if event.level == Level::RequestResponse {
                event.response =
                    Some(if omits_managers { without_managers(response_object) } else { response_object });
            }
        });
    }

    /// The audit ID, for the response header.
    pub fn id(&self) -> Option<HeaderValue> {
        let state = self.0.as_ref()?;
        HeaderValue::from_str(&state.event().id).ok()
    }

    fn visit(&self, change: impl FnOnce(&mut Event)) {
        if let Some(state) = self.0.as_ref().filter(|state| state.extent().level != Level::None) {
            change(&mut state.event());
        }
    }
}

impl ResponseKind {
    fn of(verb: Verb, path: &ResourcePath) -> Self {
        let is_long = verb == Verb::Watch || nodes::needs_node(&path.group, &path.subresource);
        let is_done =
            matches!(path.subresource.as_str(), "binding" | "eviction") || path.resource == "bindings";
        let may_be_status = verb == Verb::Delete || is_done;
        Self { is_long, is_opaque: is_long, may_be_status, is_mounted: false }
    }
}

impl TrailState {
    /// The audit level and options of this request. If computed before authentication, the policy is evaluated for an unknown
    /// user.
    fn extent(&self) -> Extent {
        *self.extent.get_or_init(|| {
            let mut event = self.event();
            let target = match &event.object {
                Some(of) => AuditTarget::Resource {
                    group: &of.api_group,
                    resource: &of.resource,
                    subresource: &of.subresource,
                    namespace: &of.namespace,
                    name: &of.name,
                },
                None => AuditTarget::Path(event.uri.split('?').next().unwrap_or_default()),
            };
            let (user, groups, verb) = (&event.user.username, &event.user.groups, &event.verb);
            let extent = self.audit.policy.extent(&Attributes { user, groups, verb, target });
            event.level = extent.level;
            extent
        })
    }

    /// Whether no further event follows.
    fn is_over(&self) -> bool {
        self.extent.get().is_none() || self.event().level == Level::None
    }

    /// Writes the last event of a request that panicked, once.
    fn panicked(&self) {
        if self.is_over() {
            return;
        }
        let message = "APIServer panic'd";
        self.event().status = Some(json!({
            "metadata": {}, "status": "Failure", "message": message, "reason": "InternalError", "code": 500,
        }));
        self.write(Stage::Panic);
        self.event().level = Level::None;
    }

    fn event(&self) -> MutexGuard<'_, Event> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, stage: Stage) {
        if !self.extent().has(stage) {
            return;
        }
        let event = self.event();
        let line = match stage {
            Stage::RequestReceived => event.line(stage, &event.received),
            _ => event.line(stage, &time()),
        };
        drop(event);
        let written = self.audit.log.add(&line);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = written;
    }

    fn take_last(&self) -> Option<Written> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes the last event, once.
    fn complete(&self) {
        if self.is_over() {
            return;
        }
        self.write(Stage::ResponseComplete);
        self.event().level = Level::None;
    }
}

impl Drop for TrailState {
    /// Writes the last event, however the request ended.
    fn drop(&mut self) {
        if self.is_over() {
            return;
        }
        let is_answered = self.event().status.is_some();
        if !is_answered {
            let message = "Connection closed early";
            self.event().status =
                Some(json!({"metadata": {}, "status": "Success", "message": message, "code": 200}));
            if self.kind.is_long {
                self.write(Stage::ResponseStarted);
            }
        }
        self.complete();
    }
}

/// The fields of a `Status` that events have.
fn summary(status: &Value, code: Value) -> Value {
    let mut summary = json!({"metadata": {}});
    for key in ["status", "message", "reason", "details", "code"] {
        if let Some(value) = status.get(key) {
            summary[key] = value.clone();
        }
    }
    if !code.is_null() {
        summary["code"] = code;
    }
    summary
}

fn user(identity: &Identity) -> User {
    User {
        username: identity.name.clone(),
        uid: identity.uid.clone(),
        groups: identity.groups.clone(),
        extra: identity.extra.clone(),
    }
}

fn reference(path: &ResourcePath) -> ObjectReference {
    ObjectReference {
        resource: path.resource.clone(),
        namespace: path.namespace.clone(),
        name: path.name.clone(),
        api_group: path.group.clone(),
        api_version: path.version.clone(),
        subresource: path.subresource.clone(),
        ..ObjectReference::default()
    }
}

/// The current time in the format of events.
fn time() -> String {
    let now = Timestamp::now();
    format!("{}.{:06}Z", now.strftime("%Y-%m-%dT%H:%M:%S"), now.subsec_nanosecond() / 1000)
}
