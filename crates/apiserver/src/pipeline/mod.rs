//! The request pipeline: every request takes these steps, listed in order.

mod failure;
mod observe;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use http::header::ACCEPT;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use model::error::{Error, quote};
use model::selector::{Test, field};
use mount::{Mount, Unauthenticated};
use process::go_time;
use tokio::time::{Instant as Deadline, timeout};
use tracing::Instrument;

use crate::api::ApiServer;
use crate::audit::{ID, Trail};
use crate::auth::{
    Authentication, AuthorizerAttributes, Connection, Decision, Identity, authorize, impersonate,
};
use crate::body::Body;
use crate::endpoints;
use crate::flow_control::Flow;
use crate::gate::{FlowDistinguisher, PriorityLevel, Slot, VerbClass};
use crate::metrics::Counted;
use crate::mounted::{self, Arrival};
use crate::pacing::LARGE_BODY;
use crate::request::path::{self, ParsedPath, ResourcePath};
use crate::request::query::Query;
use crate::request::verb::Verb;
use crate::request_body::read_body;
use crate::warnings::Warnings;
use crate::{bootstrap, compress, mounts, request, verbs};

use failure::failure;
use observe::{RequestHead, count, labels, of_no_resource, span};

/// The longest time of a backup before its first byte.
const BACKUP: Duration = Duration::from_secs(60 * 60);

/// State of a request that its steps share.
#[derive(Default)]
struct RequestContext {
    warnings: Warnings,
    trail: Trail,
    flow: OnceLock<Flow>,
    /// The deadline of the request.
    deadline: OnceLock<Deadline>,
    /// Set by authentication; the error is the reason why the caller is not authenticated.
    authenticated: OnceLock<Result<(), Unauthenticated>>,
}

/// Response extension: the request was authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authenticated;

/// RequestInfo: the resource, non-resource path or mount of a request, parsed from its head.
pub(crate) enum RequestInfo {
    /// A verb on a resource.
    Resource { verb: Verb, path: ResourcePath },
    /// The path does not support this HTTP method. Authorization runs first: an unauthorized caller gets 403, not 405.
    UnsupportedMethod { verb: &'static str, path: ResourcePath },
    /// A non-resource path in its original text, which is both authorized and served.
    Plain { method: String, path: String },
    /// A path of a mount in its original text, which is both authorized and served.
    Mounted { method: String, path: String, mount: Arc<Mount>, is_public: bool },
}

/// Answers a request. Errors and panics become a `Status`, or a failure in the format of a mount.
pub(crate) async fn answer<B>(api: &ApiServer, connection: &Connection, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let begin = Instant::now();
    let head = RequestHead { method: request.method().clone(), uri: request.uri().clone() };
    let accept = request.headers().get(ACCEPT).cloned();
    let trail = OnceLock::new();
    // Locks are held over single steps and ignore poisoning, so a panic leaves no shared state half changed.
    match AssertUnwindSafe(guarded(api, connection, request, &head, begin, &trail)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            api.metrics.panics.inc();
            let (RequestHead { method, uri }, panic) = (&head, tasks::panic_text(&*panic));
            tracing::error!(%method, path = uri.path(), panic, "panic while serving a request");
            let labels = of_no_resource(&method.as_str().to_lowercase());
            count(api, labels, StatusCode::INTERNAL_SERVER_ERROR.as_u16(), begin.elapsed());
            if let Some(trail) = trail.get() {
                trail.settle_panic().await;
            }
            let message = "This request caused apiserver to panic. Look in the logs for details.".to_owned();
            failure(&Error::Internal { message }, accept, head.form(api, None))
        }
    }
}

async fn guarded<B>(
    api: &ApiServer,
    connection: &Connection,
    request: Request<B>,
    head: &RequestHead,
    begin: Instant,
    trail: &OnceLock<Trail>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let accept = request.headers().get(ACCEPT).cloned();
    let info = request_info(api, &request);
    let span = span(&info);
    let trail = trail.get_or_init(|| Trail::begin(api.audit.as_ref(), &request, &info)).clone();
    let context = RequestContext { trail, ..RequestContext::default() };
    let id = context.trail.id().or_else(|| request.headers().get(ID).cloned());
    let (labels, result) = match info {
        Ok(info) => {
            let labels = labels(api, &info);
            // A guard: if the client disconnects, this future is dropped at any await.
            let _counted = Counted::new(&api.metrics.in_flight);
            let result = match time_for(api, &info, request.uri()) {
                Ok(time) => {
                    let _ = context.deadline.set(Deadline::now() + time);
                    let steps = run_steps(api, connection, info, request, &context).instrument(span.clone());
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
            let unauthenticated = context.authenticated.get().and_then(|known| known.err());
            let response = failure(&error, accept, head.form(api, unauthenticated));
            context.trail.failed(&error, response.status().as_u16());
            (response, Some(error))
        }
    };
    let is_whole = response.body().is_whole();
    context.trail.settle(is_whole).await;
    if let Some(id) = id {
        response.headers_mut().insert(ID, id);
    }
    if let Some(Ok(())) = context.authenticated.get() {
        response.extensions_mut().insert(Authenticated);
    }
    context.warnings.put(response.headers_mut());
    if let Some(flow) = context.flow.get() {
        flow.add_headers(response.headers_mut());
    }
    let (code, elapsed) = (response.status().as_u16(), begin.elapsed());
    span.record("code", code);
    span.in_scope(|| head.log(code, elapsed, error.as_ref()));
    count(api, labels, code, elapsed);
    bootstrap::note_answer(api, connection);
    response
}

/// The time limit of a request. Long-running requests ignore the timeout parameter.
fn time_for(api: &ApiServer, info: &RequestInfo, uri: &Uri) -> Result<Duration, Error> {
    let longest = if is_backup(info) { BACKUP } else { api.limits.request_timeout };
    let query = uri.query().unwrap_or("");
    let is_long = match info {
        // The parameters of a mount are its own.
        RequestInfo::Resource { verb: Verb::Watch, .. } | RequestInfo::Mounted { .. } => true,
        RequestInfo::Resource { path, .. } => verbs::nodes::needs_node(&path.group, &path.subresource),
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

fn is_backup(info: &RequestInfo) -> bool {
    matches!(info, RequestInfo::Plain { path, .. } if path == endpoints::backup::PATH)
}

fn took_too_long() -> Error {
    let message = "request did not complete within the allotted timeout".to_owned();
    Error::Timeout { message, retry_after_seconds: 0 }
}

/// The steps from the request head to the response.
async fn run_steps<B>(
    api: &ApiServer,
    connection: &Connection,
    info: RequestInfo,
    request: Request<B>,
    context: &RequestContext,
) -> Result<Response<Body>, Error>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query().unwrap_or(""));
    let (caller, unauthenticated) = authenticate(api, connection, &info, &head, context).await?;
    context.trail.identify(&caller).await?;
    bootstrap::wait_for_bootstrap(api, &caller, &info, &head.headers).await?;
    let caller = impersonate::effective_user(caller, &head.headers, &*api.authorizer)?;
    if head.headers.contains_key(impersonate::USER) {
        context.trail.act_as(&caller);
    }
    tracing::debug!(user = caller.name, "request authenticated");
    authorize_request(api, &caller, &info, &query, context)?;
    let level = PriorityLevel::of(connection, &caller, context.flow.get().map(|flow| flow.priority));
    let flow = FlowDistinguisher { user: &caller.name, level, class: class_of(&info), width: 1 };
    let gzip = compress::is_wanted(&head.headers) && may_be_compressed(&info) && !is_backup(&info);
    let mut slot = None;
    let response = match info {
        RequestInfo::Resource { verb, path } => {
            let mut room = api.gate.room(flow);
            let body = match flow.class {
                VerbClass::Mutate => read_body(body, &api.limits, &mut room).await?,
                VerbClass::Read | VerbClass::Watch => Bytes::new(),
            };
            let _held = room.into_taken();
            // After the body is read: a slow sender must not hold a slot.
            slot = Some(api.gate.enter(flow)?).filter(Slot::is_counted);
            let is_large = body.len() > LARGE_BODY;
            let work = std::pin::pin!(verbs::dispatch(
                api,
                caller,
                verb,
                path,
                verbs::Input { query, headers: head.headers, body },
                verbs::Context {
                    warnings: &context.warnings,
                    trail: &context.trail,
                    deadline: context.deadline.get().copied(),
                    level,
                },
            ));
            if is_large { api.pacer.pace(work).await? } else { work.await? }
        }
        RequestInfo::UnsupportedMethod { .. } => {
            return Err(Error::MethodNotAllowed {
                group: String::new(),
                resource: String::new(),
                verb: String::new(),
            });
        }
        RequestInfo::Plain { method, path } => {
            endpoints::answer(api, &method, &path, &query, &head.headers, flow).await?
        }
        RequestInfo::Mounted { mount, .. } => {
            let audit_id = context.trail.id().or_else(|| head.headers.get(ID).cloned());
            let caller = unauthenticated.map_or_else(|| Ok(caller.clone()), Err);
            let arrival = Arrival { mount: &mount, head, body, caller, flow, audit_id };
            let (response, taken) = mounted::answer(api, arrival).await?;
            slot = Some(taken).filter(Slot::is_counted);
            response
        }
    };
    let response = context.trail.answered(response).await;
    let response = if gzip { compress::compress(response).await } else { response };
    // The slot is held until the response is read.
    Ok(match slot {
        Some(slot) => response.map(|body| body.holding(slot)),
        None => response,
    })
}

/// Authenticates the caller. A public path of a mount is served without authentication; its handler gets the reason.
async fn authenticate(
    api: &ApiServer,
    connection: &Connection,
    info: &RequestInfo,
    head: &Parts,
    context: &RequestContext,
) -> Result<(Identity, Option<Unauthenticated>), Error> {
    let caller = api.authentication.identify(connection, &head.headers, &context.warnings).await;
    let caller = caller.and_then(|caller| {
        api.authentication.check_anonymous(&caller, head.uri.path())?;
        Ok(caller)
    });
    let reason = match &caller {
        Err(_) if Authentication::has_credentials(connection, &head.headers) => {
            Unauthenticated::InvalidCredentials
        }
        _ => Unauthenticated::NoCredentials,
    };
    let is_known = matches!(&caller, Ok(caller) if !caller.is_in("system:unauthenticated"));
    let _ = context.authenticated.set(if is_known { Ok(()) } else { Err(reason) });
    match caller {
        Ok(caller) => Ok((caller, None)),
        // Impersonation needs an authenticated caller.
        Err(Error::Unauthorized) if is_public(info) && !impersonate::is_requested(&head.headers) => {
            Ok((Identity::anonymous(), Some(reason)))
        }
        Err(error) => Err(error),
    }
}

fn is_public(info: &RequestInfo) -> bool {
    matches!(info, RequestInfo::Mounted { is_public: true, .. })
}

/// The verb class of a request. Of non-resource paths only documents take a slot, and those are reads.
fn class_of(info: &RequestInfo) -> VerbClass {
    match info {
        RequestInfo::Resource { verb: Verb::Watch, .. } => VerbClass::Watch,
        RequestInfo::Resource { verb, .. } if verb.is_mutating() => VerbClass::Mutate,
        RequestInfo::Mounted { method, .. } if !matches!(method.as_str(), "get" | "head" | "options") => {
            VerbClass::Mutate
        }
        RequestInfo::Resource { .. }
        | RequestInfo::UnsupportedMethod { .. }
        | RequestInfo::Plain { .. }
        | RequestInfo::Mounted { .. } => VerbClass::Read,
    }
}

/// Only reads are compressed; watch events must not wait in an encoder.
fn may_be_compressed(info: &RequestInfo) -> bool {
    matches!(info, RequestInfo::Resource { verb: Verb::Get | Verb::List, .. } | RequestInfo::Plain { .. })
}

/// Parses the RequestInfo. The body is not read, and the caller is not authenticated yet.
fn request_info<B>(api: &ApiServer, request: &Request<B>) -> Result<RequestInfo, Error> {
    let uri = request.uri();
    let length = uri.path().len() + uri.query().map_or(0, str::len);
    if length > api.limits.url_bytes {
        let message = format!("the URL is longer than {} bytes", api.limits.url_bytes);
        return Err(Error::BadRequest { message });
    }
    // Mounts come first: `/api/v1/…` is the core group's otherwise.
    if let Some(mount) = api.mounts.find(uri.path()) {
        return mounted_request_info(mount, request.method(), uri.path());
    }
    match path::parse(uri.path()) {
        None => Err(Error::BadRequest { message: "the path is not UTF-8".to_owned() }),
        Some(ParsedPath::Plain(path)) => {
            Ok(RequestInfo::Plain { method: request.method().as_str().to_lowercase(), path })
        }
        Some(ParsedPath::Resource(path)) => {
            let query = Query::parse(uri.query().unwrap_or(""));
            Ok(match request::verb(request.method(), &path, &query) {
                Some(verb) => RequestInfo::Resource { verb, path },
                None if path.watch_prefix => {
                    RequestInfo::UnsupportedMethod { verb: Verb::Watch.as_str(), path }
                }
                None => RequestInfo::UnsupportedMethod { verb: verb_of(request.method()), path },
            })
        }
    }
}

fn mounted_request_info(mount: &Arc<Mount>, method: &Method, path: &str) -> Result<RequestInfo, Error> {
    mounts::check_spelling(mount.path_below(path).unwrap_or_default())?;
    Ok(RequestInfo::Mounted {
        method: method.as_str().to_lowercase(),
        path: path.to_owned(),
        mount: Arc::clone(mount),
        is_public: mount.is_public(method, path),
    })
}

/// The verb of an HTTP method for non-resource paths.
fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => Verb::Create.as_str(),
        Method::PUT => Verb::Update.as_str(),
        Method::PATCH => Verb::Patch.as_str(),
        _ => "",
    }
}

fn authorize_request(
    api: &ApiServer,
    caller: &Identity,
    info: &RequestInfo,
    query: &Query,
    context: &RequestContext,
) -> Result<(), Error> {
    let named = match info {
        RequestInfo::Resource { verb, path } => named_by_selector(*verb, path, query),
        _ => None,
    };
    let attributes = match info {
        RequestInfo::Plain { method, path } | RequestInfo::Mounted { method, path, .. } => {
            AuthorizerAttributes::Path { verb: method, path }
        }
        RequestInfo::UnsupportedMethod { verb, path } => AuthorizerAttributes::Resource { verb, path },
        RequestInfo::Resource { verb, path } => {
            AuthorizerAttributes::Resource { verb: verb.as_str(), path: named.as_ref().unwrap_or(path) }
        }
    };
    if let Some(flow) = api.flows.of(caller, attributes).filter(|_| has_flow(info)) {
        let _ = context.flow.set(flow);
    }
    let decision =
        if is_public(info) { Decision::allow() } else { api.authorizer.decide(caller, attributes) };
    context.trail.decided(&decision);
    authorize::allowed(decision, caller, attributes)
}

/// Kubernetes exempts connections to nodes from flow control.
fn has_flow(info: &RequestInfo) -> bool {
    match info {
        RequestInfo::Resource { path, .. } | RequestInfo::UnsupportedMethod { path, .. } => {
            !verbs::nodes::needs_node(&path.group, &path.subresource)
        }
        RequestInfo::Plain { .. } | RequestInfo::Mounted { .. } => true,
    }
}

/// A list or watch with a field selector on `metadata.name` needs the permission for that object only.
pub(crate) fn named_by_selector(verb: Verb, path: &ResourcePath, query: &Query) -> Option<ResourcePath> {
    let selector = query.text("fieldSelector");
    if !matches!(verb, Verb::List | Verb::Watch)
        || !path.name.is_empty()
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
    is_segment.then(|| ResourcePath { name, ..path.clone() })
}
