//! Mounts: a product serves its own paths on the server's port.

mod acting;
mod audit;
mod failures;
mod limits;

use std::sync::{Arc, Mutex};

use apiserver::auth::{Authentication, Connection, Identity, StaticToken};
use apiserver::{ApiServer, Builder};
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mount::{ActingClient, Body, Call, Failure, Mount};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;

use crate::client::{Answer, CONFIGMAPS, Client, PATIENCE, memory};

/// One prefix below the core group, and one outside of all Kubernetes paths.
pub const RESOURCES: &str = "/api/v1/resources";
const CONSOLE: &str = "/console";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A product with one mount.
#[derive(Clone, Default)]
pub struct Product {
    /// Method and path of every call of the handler.
    calls: Arc<Mutex<Vec<String>>>,
    /// The client of the last caller that asked to keep it.
    kept: Arc<Mutex<Option<ActingClient>>>,
}

impl Product {
    /// The mount, with one public path and its own failure format.
    pub fn mount(&self, prefix: &str) -> Mount {
        let product = self.clone();
        Mount::new(prefix, move |call| product.clone().answer(call))
            .public(Method::GET, "/openapi")
            .failures(problem)
    }

    /// Takes the calls so far.
    pub fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    async fn answer(self, call: Call) -> Response<Body> {
        let line = format!("{} {}", call.request.method(), call.request.uri().path());
        self.calls.lock().unwrap().push(line);
        match call.path() {
            "/panic" => panic!("a defect of the product"),
            "/hang" => futures::future::pending().await,
            "/stream" => Response::new(Body::stream(
                futures::stream::iter([Ok(Bytes::from("data: first\n\n"))]).chain(futures::stream::pending()),
            )),
            "/act" => acting::act(call).await,
            "/keep" => {
                *self.kept.lock().unwrap() = Some(call.caller.unwrap().client);
                Response::new(Body::empty())
            }
            _ => Response::new(Body::from(seen(&call).to_string())),
        }
    }
}

/// The call as the handler receives it.
fn seen(call: &Call) -> Value {
    let uri = call.request.uri();
    let headers = call.request.headers().iter();
    let headers: Vec<String> =
        headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    let caller = match &call.caller {
        Ok(caller) => json!({"name": caller.user.name, "groups": caller.user.groups,
            "anonymous": caller.user.is_anonymous()}),
        Err(reason) => json!({"none": reason.to_string()}),
    };
    json!({
        "method": call.request.method().as_str(), "uri": uri.to_string(), "path": call.path(), "query": uri.query(),
        "headers": headers, "body": String::from_utf8_lossy(call.request.body()), "caller": caller,
    })
}

/// A failure in the format of RFC 9457. The anonymous user is asked for credentials.
fn problem(failure: &Failure<'_>) -> Response<Bytes> {
    let status = match failure.unauthenticated {
        Some(_) if failure.status == StatusCode::FORBIDDEN => StatusCode::UNAUTHORIZED,
        _ => failure.status,
    };
    let reason = failure.unauthenticated.map(|reason| reason.to_string());
    let problem = json!({"status": status.as_u16(), "title": failure.reason, "detail": failure.message,
        "instance": failure.path, "unauthenticated": reason});
    let response = Response::builder().status(status).header("content-type", "application/problem+json");
    response.body(Bytes::from(problem.to_string())).unwrap()
}

/// A server with a product at two prefixes, and the tokens `alice`, `bob` and `master`.
pub async fn server(product: &Product, change: impl FnOnce(Builder) -> Builder) -> Client {
    let token = |name: &str, groups: &[&str]| StaticToken {
        token: name.to_owned(),
        identity: Identity::authenticated(name, groups.iter().map(|group| (*group).to_owned())),
    };
    let tokens = vec![token("alice", &[]), token("bob", &[]), token("master", &["system:masters"])];
    Client::with(|builder| {
        let builder = builder.authentication(Authentication::new(tokens));
        change(builder.mount(product.mount(RESOURCES)).mount(product.mount(CONSOLE)))
    })
    .await
}

/// Sends a request over a connection without a client certificate.
async fn send(api: &ApiServer, request: Request<Full<Bytes>>) -> Answer {
    let (head, body) = api.answer(&Connection::Bare, request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer { code: head.status.as_u16(), headers: head.headers, bytes }
}

async fn get(api: &ApiServer, token: &str, path: &str) -> Answer {
    let mut request = Request::get(path);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    send(api, request.body(Full::default()).unwrap()).await
}

/// Grants a user methods on paths.
async fn allow(admin: &Client, user: &str, verbs: &[&str], paths: &[&str]) {
    let rules = json!([{"verbs": verbs, "nonResourceURLs": paths}]);
    grant(admin, user, &format!("{user}-paths"), &rules).await;
}

/// Binds a user to a new ClusterRole.
async fn grant(admin: &Client, user: &str, name: &str, rules: &Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    admin.create(&format!("{RBAC}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": user}],
    });
    admin.create(&format!("{RBAC}/clusterrolebindings"), &binding).await;
}

#[tokio::test]
async fn the_whole_request_reaches_the_handler_but_for_its_credentials() {
    let admin = server(&Product::default(), |builder| builder).await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
        let request = Request::builder()
            .method(method)
            .uri("/api/v1/resources/a%20b/c?x=1&timeout=soon&watch=true")
            .header("authorization", "Bearer master")
            .header("impersonate-user", "carol")
            .header("impersonate-group", "system:masters")
            .header("x-own", "value")
            .body(Full::from("body"))
            .unwrap();
        let answer = send(&admin.api, request).await;
        assert_eq!(answer.code, 200, "{method}");
        let seen = answer.json();
        assert_eq!(seen["method"], method);
        assert_eq!(seen["uri"], "/api/v1/resources/a%20b/c?x=1&timeout=soon&watch=true");
        assert_eq!(
            (&seen["path"], &seen["query"]),
            (&json!("/a%20b/c"), &json!("x=1&timeout=soon&watch=true"))
        );
        assert_eq!(seen["headers"], json!(["x-own: value"]));
        assert_eq!(seen["body"], "body");
        assert_eq!(seen["caller"]["name"], "carol", "impersonation is over by then");
    }
}

#[tokio::test]
async fn a_mount_is_looked_up_before_kubernetes_paths_and_takes_nothing_from_them() {
    let product = Product::default();
    let admin = server(&product, |builder| builder).await;
    for (path, below) in [
        (RESOURCES, ""),
        ("/api/v1/resources/", "/"),
        ("/api/v1/resources/x/status", "/x/status"),
        ("/console/x", "/x"),
    ] {
        assert_eq!(admin.get(path).await.json()["path"], below, "{path}");
    }
    product.take_calls();
    assert_eq!(admin.get(CONFIGMAPS).await.json()["kind"], "ConfigMapList");
    assert_eq!(admin.get("/api/v1").await.json()["kind"], "APIResourceList");
    for path in [
        "/api/v1/resourcesx",
        "/api/v1/%72esources",
        "//api/v1/resources",
        "/api//v1/resources",
        "/api/v1/namespaces/default/resources",
        "/api/v1/watch/resources",
        "/consol",
        "/CONSOLE",
    ] {
        assert_eq!(admin.get(path).await.code, 404, "{path}");
    }
    assert_eq!(product.take_calls(), Vec::<String>::new());
    let paths = admin.get("/").await.json()["paths"].to_string();
    assert!(paths.contains("\"/api/v1/resources\"") && paths.contains("\"/console\""), "{paths}");
}

#[tokio::test]
async fn the_text_that_is_served_is_the_text_that_is_authorized() {
    let product = Product::default();
    let admin = server(&product, |builder| builder).await;
    allow(&admin, "alice", &["get"], &["/console/open/*", "/console"]).await;
    for (path, code) in [
        ("/console/open/x", 200),
        ("/console/open/", 200),
        ("/console/open", 403),
        ("/console/closed", 403),
        ("/console/%6Fpen/x", 400),
        ("/console/open/../closed", 400),
        ("/console/open/%2e%2e/closed", 400),
        ("/console/open/..%2fclosed", 400),
        ("/console/open//closed", 400),
        ("/console", 200),
        ("/console/", 403),
        ("/console?x=/y", 200),
    ] {
        let answer = get(&admin.api, "alice", path).await;
        assert_eq!(answer.code, code, "{path}");
        let served =
            if code == 200 { vec![format!("GET {}", path.split('?').next().unwrap())] } else { vec![] };
        assert_eq!(product.take_calls(), served, "{path}");
    }
    let request = Request::post("/console").header("authorization", "Bearer alice");
    assert_eq!(send(&admin.api, request.body(Full::default()).unwrap()).await.code, 403, "get is not post");
}

/// The role `system:discovery` of Kubernetes allows every authenticated user to get `/api/*`.
#[tokio::test]
async fn below_api_every_authenticated_user_may_get_and_nothing_else() {
    let admin = server(&Product::default(), |builder| builder).await;
    let path = format!("{RESOURCES}/x");
    assert_eq!(get(&admin.api, "alice", &path).await.code, 200);
    assert_eq!(get(&admin.api, "", &path).await.code, 401);
    let request = Request::post(&path).header("authorization", "Bearer alice");
    assert_eq!(send(&admin.api, request.body(Full::default()).unwrap()).await.code, 403);
}

#[tokio::test]
async fn a_public_path_is_served_without_credentials_and_nothing_beside_it() {
    let anonymous_off = Authentication::default().without_anonymous();
    let anonymous_elsewhere = Authentication::default().with_anonymous_at(vec!["/livez".to_owned()]);
    for (authentication, caller) in [
        (
            Authentication::default(),
            json!({"name": "system:anonymous", "groups": ["system:unauthenticated"], "anonymous": true}),
        ),
        (anonymous_off, json!({"none": "the request has no credentials"})),
        (anonymous_elsewhere, json!({"none": "the request has no credentials"})),
    ] {
        let admin = server(&Product::default(), |builder| builder.authentication(authentication)).await;
        let answer = get(&admin.api, "", "/console/openapi?x=1").await;
        assert_eq!((answer.code, &answer.json()["caller"]), (200, &caller));
        let answer = get(&admin.api, "wrong", "/console/openapi").await;
        assert_eq!(answer.json()["caller"], json!({"none": "the credentials are invalid"}));
        for path in
            ["/console/openapi/", "/console/openapi/x", "/console", "/console/%6fpenapi", "/console//openapi"]
        {
            assert!(matches!(get(&admin.api, "", path).await.code, 400 | 401), "{path}");
        }
        for method in [Method::POST, Method::HEAD] {
            let request = Request::builder().method(method).uri("/console/openapi").body(Full::default());
            assert_eq!(send(&admin.api, request.unwrap()).await.code, 401);
        }
        let request = Request::get("/console/openapi").header("impersonate-user", "alice");
        let answer = send(&admin.api, request.body(Full::default()).unwrap()).await;
        assert_eq!(answer.code, 401, "without a caller nobody acts as somebody else");
    }
    let admin = server(&Product::default(), |builder| builder).await;
    let known = get(&admin.api, "alice", "/console/openapi").await.json();
    assert_eq!(known["caller"]["name"], "alice", "a caller without any rights is told to the handler, too");
}

#[tokio::test]
async fn a_prefix_that_collides_is_refused_when_the_server_is_built() {
    let product = Product::default();
    let admin = Client::new().await;
    let told = admin.get("/").await.json();
    let told = told["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned());
    let untold =
        ["/openapi", "/openid", "/orlop/backup", "/api/v1/pods", "/api/v1/pods/x", "/api/v1/namespaces"];
    for prefix in told.chain(untold.map(str::to_owned)).chain([format!("{RESOURCES}/")]) {
        let built = ApiServer::builder(memory().await).mount(product.mount(&prefix)).build().await;
        let error = built.err().unwrap_or_else(|| panic!("{prefix} is mounted")).to_string();
        assert!(error.contains(&format!("mount \"{prefix}\"")), "{error}");
    }
    let twice =
        ApiServer::builder(memory().await).mount(product.mount(CONSOLE)).mount(product.mount(CONSOLE));
    assert!(twice.build().await.is_err());
    let nested =
        ApiServer::builder(memory().await).mount(product.mount(CONSOLE)).mount(product.mount("/console/x"));
    let nested = nested.build().await.unwrap();
    assert_eq!(nested.mounts().map(Mount::prefix).collect::<Vec<_>>(), ["/console/x", "/console"]);
    let request = Request::get("/console/x/y").body(Full::default()).unwrap();
    let admin = Identity::authenticated("admin", ["system:masters".to_owned()]);
    let (_, body) = nested.answer(&Connection::InProcess(admin), request).await.into_parts();
    let seen: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(seen["path"], "/y", "the longest prefix serves");
}

#[tokio::test]
async fn metrics_name_the_mount_and_never_the_path() {
    let admin = server(&Product::default(), |builder| builder).await;
    for i in 0..20 {
        assert_eq!(admin.get(&format!("{RESOURCES}/thing-{i}")).await.code, 200);
        let (brew, pot) = (Method::from_bytes(b"BREW").unwrap(), format!("{RESOURCES}/pot-{i}"));
        assert_eq!(admin.send(brew, &pot, &[], b"").await.code, 200);
    }
    let text = String::from_utf8(admin.get("/metrics").await.bytes.to_vec()).unwrap();
    let mounted: Vec<&str> = text.lines().filter(|line| line.contains(RESOURCES)).collect();
    let count = |verb: &str| {
        let labels =
            format!(r#"{{verb="{verb}",group="",resource="{RESOURCES}",subresource="",code="200"}} 20"#);
        mounted.iter().filter(|line| line.ends_with(&labels)).count()
    };
    assert_eq!((count("get"), count("other")), (1, 1), "{mounted:#?}");
    assert!(!text.contains("thing-") && !text.contains("pot-") && !text.contains("BREW"));
}

/// The next chunk of a stream; `None` at its end.
async fn next(body: &mut apiserver::Body) -> Option<Bytes> {
    let frame = timeout(PATIENCE, body.frame()).await.expect("the stream hangs");
    frame.map(|frame| frame.unwrap().into_data().unwrap())
}

/// The next chunk if it is available.
fn ready(body: &mut apiserver::Body) -> Option<Option<Bytes>> {
    next(body).now_or_never()
}

async fn call(
    client: &mut ActingClient,
    request: Request<Full<Bytes>>,
) -> Result<Answer, mount::RequestEnded> {
    let (head, body) = client.call(request).await?.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Ok(Answer { code: head.status.as_u16(), headers: head.headers, bytes })
}
