//! Requests to mounts: from the pipeline to the handler of a product and back.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use http::{HeaderValue, Request, Response, request};
use model::error::Error;
use mount::{ActingClient, Backend, BoxError, Call, Caller, Mount, RequestBody, Unauthenticated, User};

use crate::api::ApiServer;
use crate::audit;
use crate::auth::{Connection, Identity};
use crate::body::{Aborted, Body};
use crate::gate::{FlowDistinguisher, Slot, VerbClass};
use crate::metrics::Counted;
use crate::request_body::read_body;

/// A request to a mount, after the common steps of the pipeline.
pub(crate) struct Arrival<'a, B> {
    pub mount: &'a Mount,
    pub head: request::Parts,
    pub body: B,
    pub caller: Result<Identity, Unauthenticated>,
    pub flow: FlowDistinguisher<'a>,
    /// The audit ID of the request; requests of its acting client share it.
    pub audit_id: Option<HeaderValue>,
}

/// Runs the handler of a mount within the common limits. A streamed response counts as a watch.
pub(crate) async fn answer<B>(
    api: &ApiServer,
    arrival: Arrival<'_, B>,
) -> Result<(Response<Body>, Slot), Error>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let Arrival { mount, head, body, caller, flow, audit_id } = arrival;
    let mut room = api.gate.room(flow);
    let body = read_body(body, &api.limits, &mut room).await?;
    let _held = room.into_taken();
    // After the body, as for every request: a slow sender takes no slot.
    let slot = api.gate.enter(flow)?;
    let grant = caller.map(|identity| {
        let user = user(&identity);
        let address = head.extensions.get::<IpAddr>().copied();
        let (api, connection) = (api.clone(), Connection::InProcess(identity));
        (user, Arc::new(Grant { api, connection, audit_id, address }))
    });
    let request = without_credentials(api, head).map(|()| body);
    let caller = grant
        .as_ref()
        .map_err(|reason| *reason)
        .map(|(user, grant)| Caller { user: user.clone(), client: ActingClient::new(grant) });
    let call = Call::new(mount, request, caller).ok_or(Error::PathNotFound)?;
    let (head, body) = mount.handle(call).await.into_parts();
    Ok(match body {
        mount::Body::Full(bytes) => (Response::from_parts(head, Body::Full(bytes)), slot),
        mount::Body::Stream(pieces) => {
            let slot = api.gate.enter(FlowDistinguisher { class: VerbClass::Watch, ..flow })?;
            let grant = grant.ok().map(|(_, grant)| grant);
            (Response::from_parts(head, stream(api, pieces, grant)), slot)
        }
    })
}

/// The request for the handler: without credentials and connection extensions.
fn without_credentials(api: &ApiServer, head: request::Parts) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    *request.version_mut() = head.version;
    *request.headers_mut() = head.headers;
    api.authentication.remove_credentials(request.headers_mut());
    request
}

/// A stream that ends at shutdown. The acting client works until then.
fn stream(
    api: &ApiServer,
    pieces: BoxStream<'static, Result<Bytes, BoxError>>,
    grant: Option<Arc<Grant>>,
) -> Body {
    let open = (grant, Counted::new(&api.metrics.watches));
    let pieces = pieces.take_until(api.shutdown.requested());
    Body::stream(pieces.map(move |piece| {
        let _open = &open;
        piece.map_err(|error| {
            tracing::debug!(%error, "stream of a mount failed; aborting the response");
            Aborted
        })
    }))
}

fn user(identity: &Identity) -> User {
    let Identity { name, uid, groups, extra } = identity.clone();
    User { name, uid, groups, extra }
}

/// The backend of acting clients, which hold it weakly: it ends with the caller's request.
struct Grant {
    api: ApiServer,
    connection: Connection,
    audit_id: Option<HeaderValue>,
    address: Option<IpAddr>,
}

impl Backend for Grant {
    fn answer(
        self: Arc<Self>,
        mut request: Request<RequestBody>,
    ) -> BoxFuture<'static, Response<mount::Body>> {
        if let Some(id) = &self.audit_id {
            request.headers_mut().entry(audit::ID).or_insert_with(|| id.clone());
        }
        if let Some(address) = self.address {
            request.extensions_mut().insert(address);
        }
        async move { self.api.answer(&self.connection, request).await.map(sent) }.boxed()
    }
}

/// Converts a response body for the product.
fn sent(body: Body) -> mount::Body {
    match body {
        Body::Full(bytes) => mount::Body::Full(bytes),
        mut pieces => mount::Body::stream(futures::stream::poll_fn(move |context| {
            pieces.poll_chunk(context).map(|next| next.map(|piece| piece.map_err(Into::into)))
        })),
    }
}
