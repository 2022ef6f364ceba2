//! The one way that every request takes, as one list in request order.

use std::panic::AssertUnwindSafe;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use model::error::{Error, quote};
use model::selector::{Test, field};
use process::go_time;
use tokio::time::{Instant as Deadline, timeout};
use tracing::Instrument;

use crate::api::ApiServer;
use crate::audit::{ID, Trail};
use crate::auth::{Connection, Identity, Question, authorize, impersonate};
use crate::body::Body;
use crate::endpoints;
use crate::flow_control::Flow;
use crate::gate::{FlowDistinguisher, PriorityLevel, Slot, VerbClass};
use crate::metrics::{Counted, LatencyLabels, RequestLabels};
use crate::render::{encode, respond};
use crate::request::negotiate::{self, Form, JSON, Offer};
use crate::request::path::{self, Place, ResourcePath};
use crate::request::query::Query;
use crate::request::verb::Verb;
use crate::request_body::read_body;
use crate::warnings::Warnings;
use crate::{bootstrap, compress, request, verbs};

/// How long the copy of a database may take before the first byte of it is sent.
const BACKUP: Duration = Duration::from_secs(60 * 60);

/// A request that takes longer is logged.
const SLOW: Duration = Duration::from_secs(1);

/// What is said of a request on its way, beside its answer: to the client, and to the audit log.
struct Told {
    warnings: Warnings,
    trail: Trail,
    flow: OnceLock<Flow>,
    /// When the request ends in any case.
    deadline: OnceLock<Deadline>,
    authenticated: OnceLock<Authenticated>,
}

/// In the extensions of a response: its request had valid credentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authenticated;

/// What a request asks for, read from its head alone.
pub(crate) enum Target {
    /// A verb on objects.
    Resource { verb: Verb, place: ResourcePath },
    /// A method that there is not at such a place. Who may not even do that is told so, and no more.
    Impossible { verb: &'static str, place: ResourcePath },
    /// A non-resource path, as it was sent: authorized and served by the same text.
    Plain { method: String, path: String },
}

/// Answers a request; every error has become a `Status` by then, and so has a panic.
pub(crate) async fn answer<B>(api: &ApiServer, connection: &Connection, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let begin = Instant::now();
    let asked = Asked { method: request.method().clone(), uri: request.uri().clone() };
    let accept = request.headers().get(ACCEPT).cloned();
    // Locks are held over single steps and take no notice of a panic, so nothing that others see is left half done. The audit
    // event of the panic is written when its trail goes.
    match AssertUnwindSafe(guarded(api, connection, request, &asked, begin)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            api.metrics.panics.inc();
            let (Asked { method, uri }, panic) = (&asked, tasks::panic_text(&*panic));
            tracing::error!(%method, path = uri.path(), panic, "apiserver panicked while it served a request");
            let labels = of_no_resource(&method.as_str().to_lowercase());
            count(api, labels, StatusCode::INTERNAL_SERVER_ERROR.as_u16(), begin.elapsed());
            let message = "This request caused apiserver to panic. Look in the logs for details.".to_owned();
            failure(&Error::Internal { message }, accept)
        }
    }
}

async fn guarded<B>(
    api: &ApiServer,
    connection: &Connection,
    request: Request<B>,
    asked: &Asked,
    begin: Instant,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let accept = request.headers().get(ACCEPT).cloned();
    let target = target(api, &request);
    let span = span(&target);
    let trail = Trail::begin(api.audit.as_ref(), &request, &target);
    let told = Told {
        warnings: Warnings::default(),
        trail,
        flow: OnceLock::new(),
        deadline: OnceLock::new(),
        authenticated: OnceLock::new(),
    };
    let id = told.trail.id().or_else(|| request.headers().get(ID).cloned());
    let (labels, result) = match target {
        Ok(target) => {
            let labels = labels(api, &target);
            // A guard, for a client that goes away drops this future at any await.
            let _counted = Counted::new(&api.metrics.in_flight);
            let result = match time_for(api, &target, request.uri()) {
                Ok(time) => {
                    let _ = told.deadline.set(Deadline::now() + time);
                    let steps = steps(api, connection, target, request, &told).instrument(span.clone());
                    timeout(time, steps).await.unwrap_or_else(|_| Err(took_too_long()))
                }
                Err(error) => Err(error),
            };
            (labels, result)
        }
        Err(error) => (of_no_resource(&request.method().as_str().to_lowercase()), Err(error)),
    };
    let (mut response, error) = match result {
        Ok(response) => (response, None),
        Err(error) => {
            told.trail.failed(&error);
            (failure(&error, accept), Some(error))
        }
    };
    let is_whole = response.body().is_whole();
    told.trail.settle(is_whole).await;
    if let Some(id) = id {
        response.headers_mut().insert(ID, id);
    }
    if let Some(authenticated) = told.authenticated.get() {
        response.extensions_mut().insert(*authenticated);
    }
    told.warnings.put(response.headers_mut());
    if let Some(flow) = told.flow.get() {
        flow.tell(response.headers_mut());
    }
    let (code, elapsed) = (response.status().as_u16(), begin.elapsed());
    span.record("code", code);
    span.in_scope(|| asked.log(code, elapsed, error.as_ref()));
    count(api, labels, code, elapsed);
    bootstrap::answered(api, connection);
    response
}

/// How long a request may take. What goes on for long anyway takes no shorter time from a client.
fn time_for(api: &ApiServer, target: &Target, uri: &Uri) -> Result<Duration, Error> {
    let longest = if is_backup(target) { BACKUP } else { api.limits.request_timeout };
    let query = uri.query().unwrap_or("");
    let is_long = match target {
        Target::Resource { verb: Verb::Watch, .. } => true,
        Target::Resource { place, .. } => verbs::nodes::lead_to(&place.group, &place.subresource),
        _ => false,
    };
    if is_long || !query.contains("timeout=") {
        return Ok(longest);
    }
    let query = Query::parse(query);
    let text = query.text("timeout");
    match go_time::parse(text) {
        _ if text.is_empty() => Ok(longest),
        Some(time) if time.is_zero() => Ok(longest),
        Some(time) => Ok(time.min(longest)),
        None => {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let problem = if is_number { "missing unit in" } else { "invalid" };
            let problem = format!("time: {problem} duration {}", quote(text));
            Err(Error::BadRequest {
                message: format!("invalid timeout specified in the request URL - {problem}"),
            })
        }
    }
}

fn is_backup(target: &Target) -> bool {
    matches!(target, Target::Plain { path, .. } if path == endpoints::backup::PATH)
}

fn took_too_long() -> Error {
    let message = "request did not complete within the allotted timeout".to_owned();
    Error::Timeout { message, retry_after_seconds: 0 }
}

/// The steps between the head of a request and its answer.
async fn steps<B>(
    api: &ApiServer,
    connection: &Connection,
    target: Target,
    request: Request<B>,
    told: &Told,
) -> Result<Response<Body>, Error>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query().unwrap_or(""));
    let caller = api.authentication.identify(connection, &head.headers, &told.warnings).await?;
    api.authentication.lets_in(&caller, head.uri.path())?;
    if !caller.is_in("system:unauthenticated") {
        told.authenticated.get_or_init(|| Authenticated);
    }
    told.trail.identify(&caller).await?;
    bootstrap::until_complete(api, &caller, &target, &head.headers).await?;
    let caller = impersonate::acting_as(caller, &head.headers, &*api.authorizer)?;
    if head.headers.contains_key(impersonate::USER) {
        told.trail.act_as(&caller);
    }
    tracing::debug!(user = caller.name, "authenticated");
    may(api, &caller, &target, &query, told)?;
    let level = PriorityLevel::of(connection, &caller, told.flow.get().map(|flow| flow.priority));
    let flow = FlowDistinguisher { user: &caller.name, level, class: class_of(&target), width: 1 };
    let gzip = compress::is_wanted(&head.headers) && may_be_compressed(&target) && !is_backup(&target);
    let mut slot = None;
    let response = match target {
        Target::Resource { verb, place } => {
            let mut room = api.gate.room(flow);
            let body = match flow.class {
                VerbClass::Mutate => read_body(body, &api.limits, &mut room).await?,
                VerbClass::Read | VerbClass::Watch => Bytes::new(),
            };
            let _held = room.into_taken();
            // Not before the body is there: who sends slowly keeps nobody out.
            slot = Some(api.gate.enter(flow)?).filter(Slot::is_counted);
            verbs::dispatch(
                api,
                caller,
                (verb, place),
                query,
                head.headers,
                body,
                verbs::Context {
                    warnings: &told.warnings,
                    trail: &told.trail,
                    deadline: told.deadline.get().copied(),
                },
            )
            .await?
        }
        Target::Impossible { .. } => {
            return Err(Error::MethodNotAllowed {
                group: String::new(),
                resource: String::new(),
                verb: String::new(),
            });
        }
        Target::Plain { method, path } => {
            endpoints::answer(api, &method, &path, &query, &head.headers, flow).await?
        }
    };
    let response = told.trail.answered(response).await;
    let response = if gzip { compress::compress(response).await } else { response };
    // Who does not read the answer keeps the slot.
    Ok(match slot {
        Some(slot) => response.map(|body| body.holding(slot)),
        None => response,
    })
}

/// Which bounds a request counts into. Only documents of plain paths take a slot, and those are read.
fn class_of(target: &Target) -> VerbClass {
    match target {
        Target::Resource { verb: Verb::Watch, .. } => VerbClass::Watch,
        Target::Resource { verb, .. } if verb.is_mutating() => VerbClass::Mutate,
        Target::Resource { .. } | Target::Impossible { .. } | Target::Plain { .. } => VerbClass::Read,
    }
}

/// Reads are, but not watches, whose events must not wait in an encoder.
fn may_be_compressed(target: &Target) -> bool {
    matches!(target, Target::Resource { verb: Verb::Get | Verb::List, .. } | Target::Plain { .. })
}

/// Reads what is asked for. Nothing of the body is read, and nobody is trusted yet.
fn target<B>(api: &ApiServer, request: &Request<B>) -> Result<Target, Error> {
    let uri = request.uri();
    let length = uri.path().len() + uri.query().map_or(0, str::len);
    if length > api.limits.url_bytes {
        let message = format!("the URL is longer than {} bytes", api.limits.url_bytes);
        return Err(Error::BadRequest { message });
    }
    match path::parse(uri.path()) {
        None => Err(Error::BadRequest { message: "the path is not UTF-8".to_owned() }),
        Some(Place::Plain(path)) => {
            Ok(Target::Plain { method: request.method().as_str().to_lowercase(), path })
        }
        Some(Place::Resource(place)) => {
            let query = Query::parse(uri.query().unwrap_or(""));
            Ok(match request::verb(request.method(), &place, &query) {
                Some(verb) => Target::Resource { verb, place },
                None if place.watch_prefix => Target::Impossible { verb: Verb::Watch.as_str(), place },
                None => Target::Impossible { verb: verb_of(request.method()), place },
            })
        }
    }
}

/// The verb of a method wherever it is used.
fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => Verb::Create.as_str(),
        Method::PUT => Verb::Update.as_str(),
        Method::PATCH => Verb::Patch.as_str(),
        _ => "",
    }
}

fn may(api: &ApiServer, caller: &Identity, target: &Target, query: &Query, told: &Told) -> Result<(), Error> {
    let named = match target {
        Target::Resource { verb, place } => named_by_selector(*verb, place, query),
        _ => None,
    };
    let question = match target {
        Target::Plain { method, path } => Question::Path { verb: method, path },
        Target::Impossible { verb, place } => Question::Resource { verb, place },
        Target::Resource { verb, place } => {
            Question::Resource { verb: verb.as_str(), place: named.as_ref().unwrap_or(place) }
        }
    };
    if let Some(flow) = api.flows.of(caller, question).filter(|_| has_flow(target)) {
        let _ = told.flow.set(flow);
    }
    let decision = api.authorizer.decide(caller, question);
    told.trail.decided(&decision);
    authorize::allowed(decision, caller, question)
}

/// What goes to a node is not counted by Kubernetes, however long it takes.
fn has_flow(target: &Target) -> bool {
    match target {
        Target::Resource { place, .. } | Target::Impossible { place, .. } => {
            !verbs::nodes::lead_to(&place.group, &place.subresource)
        }
        Target::Plain { .. } => true,
    }
}

/// A list or watch that selects one object by its name is about that object, and needs the right to no other.
pub(crate) fn named_by_selector(verb: Verb, place: &ResourcePath, query: &Query) -> Option<ResourcePath> {
    let selector = query.text("fieldSelector");
    if !matches!(verb, Verb::List | Verb::Watch)
        || !place.name.is_empty()
        || !selector.contains("metadata.name")
    {
        return None;
    }
    let requirements = field::parse(selector, &|_| true).ok()?;
    let name = requirements.into_iter().find_map(|requirement| match requirement.test {
        Test::In(mut names) if requirement.key == "metadata.name" => names.pop(),
        _ => None,
    })?;
    let is_segment = !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '%']);
    is_segment.then(|| ResourcePath { name, ..place.clone() })
}

/// An error as a `Status` answer, in the encoding that the client prefers.
pub(crate) fn failure(error: &Error, accept: Option<HeaderValue>) -> Response<Body> {
    if let Error::NoSuchPage = error {
        return no_such_page();
    }
    let headers: HeaderMap = accept.into_iter().map(|accept| (ACCEPT, accept)).collect();
    // Who asks for rows or metadata gets errors as JSON, which have neither.
    let form = negotiate::accepted(&headers, Offer::WHOLE, false, false);
    let form = form.unwrap_or(Form::STORED);
    let status = error.status();
    let (media_type, body) = match encode(form, &status) {
        Ok(body) => (form.encoding.media_type(), body),
        Err(_) => (JSON, Bytes::from(status.to_string())),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn no_such_page() -> Response<Body> {
    let mut response = respond("text/plain; charset=utf-8", "404 page not found\n");
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// The head of a request, kept for its line in the log: cheap to clone, and made a text only if there is a line.
struct Asked {
    method: Method,
    uri: Uri,
}

impl Asked {
    fn log(&self, code: u16, elapsed: Duration, error: Option<&Error>) {
        let Self { method, uri } = self;
        let (path, micros) = (uri.path(), elapsed.as_micros());
        match error {
            Some(error @ (Error::Internal { .. } | Error::Unavailable { .. })) => {
                tracing::error!(%method, path, code, micros, %error, "a request failed");
            }
            _ if elapsed >= SLOW => tracing::info!(%method, path, code, micros, "a request took long"),
            _ => tracing::debug!(code, micros, "answered"),
        }
    }
}

/// At debug level, for a log that shows no details need not pay for it. Its kind tells the collector of traces to take it all the same.
fn span(target: &Result<Target, Error>) -> tracing::Span {
    match target {
        Ok(Target::Resource { verb, place }) => tracing::debug_span!(
            "request",
            otel.kind = "server",
            verb = verb.as_str(),
            group = place.group,
            resource = place.resource,
            subresource = place.subresource,
            namespace = place.namespace,
            name = place.name,
            code = tracing::field::Empty,
        ),
        Ok(Target::Plain { method, path }) => tracing::debug_span!(
            "request",
            otel.kind = "server",
            verb = method,
            path,
            code = tracing::field::Empty,
        ),
        Ok(Target::Impossible { .. }) | Err(_) => {
            tracing::debug_span!("request", otel.kind = "server", code = tracing::field::Empty)
        }
    }
}

/// Labels come from what the server knows, never from what a client invents: the number of series is bounded.
fn labels(api: &ApiServer, target: &Target) -> RequestLabels {
    let known = |place: &ResourcePath| {
        let registry = api.registry();
        let found = registry.find(&place.group, &place.version, &place.resource);
        found.is_some_and(|found| found.verbs_of(&place.subresource).is_some())
    };
    match target {
        Target::Resource { verb, place } if known(place) => RequestLabels {
            verb: verb.to_string(),
            group: place.group.clone(),
            resource: place.resource.clone(),
            subresource: place.subresource.clone(),
            code: 0,
        },
        Target::Resource { verb, .. } => of_no_resource(verb.as_str()),
        Target::Impossible { verb, .. } => of_no_resource(verb),
        Target::Plain { method, .. } => of_no_resource(method),
    }
}

fn of_no_resource(verb: &str) -> RequestLabels {
    const KNOWN: [&str; 7] = ["get", "head", "options", "post", "put", "patch", "delete"];
    let known = KNOWN.contains(&verb) || Verb::ALL.iter().any(|v| v.as_str() == verb);
    RequestLabels {
        verb: if known { verb } else { "other" }.to_owned(),
        group: String::new(),
        resource: String::new(),
        subresource: String::new(),
        code: 0,
    }
}

fn count(api: &ApiServer, mut labels: RequestLabels, code: u16, elapsed: Duration) {
    labels.code = code;
    let latency = LatencyLabels { verb: labels.verb.clone(), resource: labels.resource.clone() };
    api.metrics.seconds.get_or_create(&latency).observe(elapsed.as_secs_f64());
    api.metrics.requests.get_or_create(&labels).inc();
}
