//! Measures informers of this crate beside reflectors of `kube::runtime`, with a server in the same process:
//!
//! `cargo run --release -p controller --example informers -- MODE CONTROLLERS PODS`
//!
//! MODE is `shared` (this crate, a view type per two controllers), `typed` (reflectors of k8s-openapi's Pod) or `light` (reflectors of a small
//! type, without managed fields). It prints the memory and CPU time of the first list and of one change per Pod, and the bytes that the server
//! sent. `idle` and `idle-kube` watch as many empty resources instead.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Wakes, Poll};

use bytes::Bytes;
use controller::{
    Cache, Context, Controller, ListWatch, ObjectKey, Outcome, ReconcileKey, ResourceKind, Result,
    SharedInformers,
};
use futures::{StreamExt, future, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Object};
use kube::client::Body;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Resource};
use process::Shutdown;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service;

const PODS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Pod", plural: "pods" };

/// Counts the deltas of all controllers.
type Seen = Arc<AtomicUsize>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, controllers, pods] = arguments.as_slice() else { panic!("MODE CONTROLLERS PODS") };
    let (controllers, pods) = (number(controllers), number(pods));
    let (go, changes) = watch::channel(false);
    let server = Server::new(if mode.starts_with("idle") { 0 } else { pods }, changes);
    let (client, seen) = (Client::new(server.clone(), "default"), Seen::default());
    let (mut tasks, before) = (JoinSet::new(), Usage::now());
    match mode.as_str() {
        "shared" => shared(&mut tasks, &client, controllers, &seen),
        "typed" => (0..controllers).for_each(|_| {
            reflect(&mut tasks, Api::<Pod>::all(client.clone()), (), &seen);
        }),
        "light" => (0..controllers).for_each(|_| {
            let api = Api::<Object<Spec, Status>>::all_with(client.clone(), &PODS.resource());
            reflect(&mut tasks, api, PODS.resource(), &seen);
        }),
        "idle" => idle(&mut tasks, &client, controllers),
        "idle-kube" => (0..controllers).for_each(|number| {
            let resource = resource(number);
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            reflect(&mut tasks, api, resource, &seen);
        }),
        other => panic!("{other}: shared, typed, light, idle or idle-kube"),
    }
    let all = controllers * server.lines.len();
    let streams = if mode == "shared" { 1 } else { controllers };
    let bytes = streams * (server.end.len() + server.lines.iter().map(Bytes::len).sum::<usize>());
    until(|| seen.load(Ordering::Relaxed) >= all && server.sent.load(Ordering::Relaxed) >= bytes).await;
    // The last bookmarks are received by now, or with the next turn of each task.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let listed = Usage::now();
    println!("{mode} {controllers} list:    {}", listed.since(&before, &server));
    if all > 0 {
        go.send_replace(true);
        until(|| seen.load(Ordering::Relaxed) >= 2 * all).await;
        println!("{mode} {controllers} changes: {}", Usage::now().since(&listed, &server));
    }
    tasks.abort_all();
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

/// A controller that has nothing to do but to keep a cache.
struct Nothing;

impl ReconcileKey for Nothing {
    type Key = ObjectKey;

    async fn reconcile(&self, _: &ObjectKey, _: &Context<ObjectKey>) -> Result<Outcome> {
        Ok(Outcome::Done)
    }
}

/// The view of every other controller. The number makes it a type of its own.
#[derive(Deserialize)]
struct View<const N: usize> {
    #[serde(rename = "metadata")]
    _metadata: Metadata,
    #[serde(rename = "spec")]
    _spec: Spec,
    #[serde(rename = "status")]
    _status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "uid")]
    _uid: String,
    #[serde(rename = "labels")]
    _labels: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
}

fn shared(tasks: &mut JoinSet<()>, client: &Client, controllers: usize, seen: &Seen) {
    let informers = SharedInformers::paused(client.clone());
    for number in 0..controllers {
        match number / 2 % 3 {
            0 => one::<0>(tasks, &informers, seen),
            1 => one::<1>(tasks, &informers, seen),
            _ => one::<2>(tasks, &informers, seen),
        }
    }
    informers.start();
}

fn one<const N: usize>(tasks: &mut JoinSet<()>, informers: &SharedInformers, seen: &Seen) {
    let (cache, seen) = (Cache::<View<N>>::default(), Arc::clone(seen));
    let controller =
        Controller::new("nothing", Nothing).watch_into(&cache, informers, ListWatch::all(PODS), move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            None
        });
    tasks.spawn(controller.run(Shutdown::new()));
}

fn idle(tasks: &mut JoinSet<()>, client: &Client, controllers: usize) {
    let informers = SharedInformers::new(client.clone());
    for number in 0..controllers {
        let (cache, all) = (Cache::<Value>::default(), ListWatch::all(resource(number)));
        let controller = Controller::new("nothing", Nothing).watch_into(&cache, &informers, all, |_| None);
        tasks.spawn(controller.run(Shutdown::new()));
    }
}

fn resource(number: usize) -> ApiResource {
    let kind = GroupVersionKind::gvk("sea.example.com", "v1", &format!("Ship{number}"));
    ApiResource::from_gvk_with_plural(&kind, &format!("ships{number}"))
}

fn reflect<K>(tasks: &mut JoinSet<()>, api: Api<K>, of: K::DynamicType, seen: &Seen)
where
    K: Resource + Clone + std::fmt::Debug + for<'de> Deserialize<'de> + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + std::hash::Hash + Send + Sync,
{
    let (seen, writer) = (Arc::clone(seen), reflector::store::Writer::<K>::new(of));
    let events = watcher(api, watcher::Config::default().streaming_lists());
    let events = events.modify(|object| object.meta_mut().managed_fields = None);
    let count = move |event| {
        if matches!(event, Ok(watcher::Event::Apply(_) | watcher::Event::InitApply(_))) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
        future::ready(())
    };
    tasks.spawn(reflector(writer, events).for_each(count));
}

/// A server that sends Pods, then one change of each when it is told to, then nothing.
#[derive(Clone)]
struct Server {
    lines: Arc<Vec<Bytes>>,
    end: Bytes,
    changes: watch::Receiver<bool>,
    sent: Arc<AtomicUsize>,
    streams: Arc<AtomicUsize>,
}

impl Server {
    fn new(pods: usize, changes: watch::Receiver<bool>) -> Self {
        let lines = (0..pods).map(|number| Bytes::from(format!("{}\n", event("ADDED", &pod(number)))));
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        let metadata =
            json!({"resourceVersion": "100", "annotations": annotations, "creationTimestamp": null});
        let bookmark =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"containers": []}});
        let end = Bytes::from(format!("{}\n", event("BOOKMARK", &bookmark)));
        let (sent, streams) = (Arc::default(), Arc::default());
        Self { lines: Arc::new(lines.collect()), end, changes, sent, streams }
    }
}

fn event(name: &str, object: &Value) -> String {
    format!(r#"{{"type":"{name}","object":{object}}}"#)
}

impl Service<Request<Body>> for Server {
    type Response = Response<UnsyncBoxBody<Bytes, Infallible>>;
    type Error = Infallible;
    type Future = Ready<std::result::Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Wakes<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let Self { lines, end, mut changes, sent, streams } = self.clone();
        streams.fetch_add(1, Ordering::Relaxed);
        let each = |lines: Arc<Vec<Bytes>>| stream::iter((0..lines.len()).map(move |at| lines[at].clone()));
        let changed = {
            let lines = Arc::clone(&lines);
            async move {
                // The sender lives as long as the program.
                let _ = changes.wait_for(|go| *go).await;
                each(lines)
            }
        };
        let all = each(lines).chain(stream::iter([end])).chain(stream::once(changed).flatten());
        let frames = all.chain(stream::pending()).map(move |line| {
            sent.fetch_add(line.len(), Ordering::Relaxed);
            Ok(Frame::data(line))
        });
        ready(Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(frames)))))
    }
}

/// A Pod of a Deployment, of 3 KB.
fn pod(number: usize) -> Value {
    let (name, address) =
        (format!("web-5d9c-{number:05}"), format!("10.1.{}.{}", number / 250, number % 250));
    let time = "2026-01-01T00:00:00Z";
    let condition = |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": time, "lastProbeTime": null});
    let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:ownerReferences": {".": {}}}, "f:spec": {
        "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}, "f:ports": {".": {}}}},
        "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {}}});
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("6d1f0a3e-0000-4000-8000-{number:012}"),
            "resourceVersion": format!("{}", 1000 + number), "creationTimestamp": time,
            "labels": {"app": "web", "pod-template-hash": "5d9c", "tier": "front"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9c", "uid": "r", "controller": true}],
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields},
                {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": "status"},
            ],
        },
        "spec": {
            "nodeName": format!("node-{}", number % 100), "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "schedulerName": "default-scheduler", "securityContext": {},
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "containers": [{
                "name": "web", "image": "registry.example.com/web:1.2.3", "imagePullPolicy": "IfNotPresent",
                "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                "env": [{"name": "A", "value": "one"}, {"name": "B", "value": "two"}, {"name": "C", "value": "three"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": true}],
            }],
        },
        "status": {
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": "192.168.0.1", "startTime": time,
            "qosClass": "Burstable",
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "containerStatuses": [{"name": "web", "ready": true, "restartCount": 0, "image": "web:1.2.3", "imageID": "sha256:0", "started": true,
                "state": {"running": {"startedAt": time}}, "lastState": {}}],
        },
    })
}

/// The memory and CPU time of this process, as Linux counts them.
struct Usage {
    resident_kb: i64,
    cpu_ms: i64,
}

impl Usage {
    fn now() -> Self {
        let read =
            |file: &str| std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let status = read("/proc/self/status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
        let resident_kb = line.trim().trim_end_matches(" kB").parse().expect("it is a number");
        let stat = read("/proc/self/stat");
        let (_, fields) = stat.rsplit_once(')').expect("the name of the program is in brackets");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<i64>().expect("it is a number");
        // Of the fields behind the name the times of user and system are the twelfth and thirteenth, in hundredths of a second.
        Self { resident_kb, cpu_ms: 10 * (ticks(11) + ticks(12)) }
    }

    fn since(&self, before: &Self, server: &Server) -> String {
        let (memory, cpu) = (self.resident_kb - before.resident_kb, self.cpu_ms - before.cpu_ms);
        let sent = server.sent.load(Ordering::Relaxed) >> 10;
        format!(
            "+{memory} KB resident, {cpu} ms CPU; {sent} KB sent so far, {} streams",
            server.streams.load(Ordering::Relaxed)
        )
    }
}
