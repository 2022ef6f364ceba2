//! Notes: a product that serves REST paths of its own on the API server's port.
//!
//! A note is a ConfigMap with a label. The handler reads and writes them as the caller, so that RBAC and admission decide as they
//! do for kubectl. Errors are RFC 9457 problems, whether the server, RBAC or this product found them.
//!
//! | path | |
//! |---|---|
//! | `GET /openapi` | the document of this API; public |
//! | `GET /notes` | all notes |
//! | `POST /notes` | makes one of `{"name": …, "text": …}` |
//! | `GET /events` | server-sent events: the notes that are there, then their changes |

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use mount::{Body, BoxError, Call, Caller, Failure, Mount, Unauthenticated};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The prefix of this API.
pub const PREFIX: &str = "/api/notes/v1";

const LABEL: (&str, &str) = ("notes.example.com/note", "true");
const NAMESPACE: &str = "default";

/// The mount, for the builder of a server.
#[must_use]
pub fn mount() -> Mount {
    Mount::new(PREFIX, answer).public(Method::GET, "/openapi").failures(of_server)
}

#[derive(Deserialize, Serialize)]
struct Note {
    name: String,
    text: String,
}

/// Something wrong with a request, as RFC 9457 has it.
struct Problem {
    status: StatusCode,
    detail: String,
}

async fn answer(call: Call) -> Response<Body> {
    let path = call.path().to_owned();
    routed(call).await.unwrap_or_else(|problem| problem.response(&path).map(Body::from))
}

async fn routed(call: Call) -> Result<Response<Body>, Problem> {
    match (call.request.method(), call.path()) {
        (&Method::GET, "/openapi") => Ok(respond("application/json", OPENAPI)),
        (&Method::GET, "/notes") => list(&notes(call.caller)?).await,
        (&Method::POST, "/notes") => {
            let note = serde_json::from_slice(call.request.body());
            let note = note.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error))?;
            create(&notes(call.caller)?, note).await
        }
        (&Method::GET, "/events") => {
            Ok(respond("text/event-stream", Body::stream(events(notes(call.caller)?))))
        }
        (_, "/openapi" | "/notes" | "/events") => {
            Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no such method"))
        }
        _ => Err(Problem::new(StatusCode::NOT_FOUND, "no such path")),
    }
}

/// The ConfigMaps as the caller sees them.
fn notes(caller: Result<Caller, Unauthenticated>) -> Result<Api<ConfigMap>, Problem> {
    let caller = caller.map_err(|reason| Problem::new(StatusCode::UNAUTHORIZED, reason))?;
    Ok(Api::namespaced(Client::new(caller.client, NAMESPACE), NAMESPACE))
}

fn selector() -> String {
    format!("{}={}", LABEL.0, LABEL.1)
}

async fn list(notes: &Api<ConfigMap>) -> Result<Response<Body>, Problem> {
    let maps = notes.list(&ListParams::default().labels(&selector())).await?;
    let notes: Vec<Note> = maps.items.into_iter().map(Note::of).collect();
    Ok(respond("application/json", json!({ "notes": notes }).to_string()))
}

async fn create(notes: &Api<ConfigMap>, note: Note) -> Result<Response<Body>, Problem> {
    let labels = BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())]);
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some(note.name), labels: Some(labels), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("text".to_owned(), note.text)])),
        ..ConfigMap::default()
    };
    let made = notes.create(&PostParams::default(), &map).await?;
    let mut response = respond("application/json", json!(Note::of(made)).to_string());
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// One server-sent event for each note and each of its changes. The server ends the stream when it stops.
fn events(notes: Api<ConfigMap>) -> impl Stream<Item = Result<Bytes, BoxError>> {
    let changes = watcher(notes, watcher::Config::default().labels(&selector())).map_err(BoxError::from);
    let line = |name: &str, map: ConfigMap| format!("event: {name}\ndata: {}\n\n", json!(Note::of(map)));
    changes
        .try_filter_map(move |event| async move {
            Ok(match event {
                Event::Apply(map) | Event::InitApply(map) => Some(Bytes::from(line("changed", map))),
                Event::Delete(map) => Some(Bytes::from(line("deleted", map))),
                Event::Init | Event::InitDone => None,
            })
        })
        .boxed()
}

impl Note {
    fn of(map: ConfigMap) -> Self {
        let name = map.name_any();
        let text = map.data.and_then(|mut data| data.remove("text")).unwrap_or_default();
        Self { name, text }
    }
}

impl Problem {
    fn new(status: StatusCode, detail: impl ToString) -> Self {
        Self { status, detail: detail.to_string() }
    }

    fn response(&self, path: &str) -> Response<Bytes> {
        let problem = json!({"status": self.status.as_u16(), "detail": self.detail, "instance": path});
        let mut response = Response::new(Bytes::from(problem.to_string()));
        *response.status_mut() = self.status;
        let media_type = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        response
    }
}

/// A refusal of the API server keeps its code and its words.
impl From<kube::Error> for Problem {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::BAD_GATEWAY);
                Self::new(code, status.message)
            }
            error => Self::new(StatusCode::BAD_GATEWAY, error),
        }
    }
}

/// A failure before the handler runs. The anonymous user is asked for credentials.
fn of_server(failure: &Failure<'_>) -> Response<Bytes> {
    let status = match failure.unauthenticated {
        Some(_) if failure.status == StatusCode::FORBIDDEN => StatusCode::UNAUTHORIZED,
        _ => failure.status,
    };
    Problem::new(status, failure.message).response(failure.path)
}

fn respond(media_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

const OPENAPI: &str = r#"{"openapi":"3.1.0","info":{"title":"Notes","version":"v1"},"paths":{}}"#;
