//! A controller through the life of an object, informers that list, applies, events and leaders.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context as Wakes, Poll},
    time::Duration,
};

use controller::{
    Apply, Cache, Context, Controller, Error, ListWatch, ObjectKey, Objects, Outcome, Reconciler, Result,
    SharedInformers,
    conditions::{self, ConditionStatus},
    discovery::Resolver,
    events::{Recorder, Reference},
    finalizers::{self, Stage},
    leader::{self, Epoch, Leadership, Lease, Timing},
    owners,
};
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::{Client, api::DeleteParams, api::GroupVersionKind, api::ListParams, client::Body};
use process::Shutdown;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;

use super::{Bed, CONFIG_MAPS, CRDS, EVENTS, LEASES, until};
use crate::server::PATIENCE;

const FINALIZER: &str = "sea.example.com/harbour";

#[derive(Clone, Debug, Deserialize)]
struct Ship {
    metadata: ObjectMeta,
    #[serde(default)]
    status: ShipStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ShipStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, PartialEq)]
enum Step {
    AddFinalizer,
    /// Apply the log book, and write these conditions if there are other ones.
    Sail(Option<Vec<Condition>>),
    CleanUp,
    Nothing,
}

/// Keeps a log book, which is a ConfigMap, for each ship.
struct Harbour {
    client: Client,
    recorder: Recorder,
    ships: kube::api::ApiResource,
    clean_ups: Arc<AtomicUsize>,
}

impl Harbour {
    fn objects(&self, key: &ObjectKey) -> Objects {
        Objects::new(&self.client, &self.ships, key.namespace())
    }

    async fn sail(&self, key: &ObjectKey, ship: &Ship, conditions: Option<Vec<Condition>>) -> Result<()> {
        let mut book = ObjectMeta { namespace: key.namespace().map(str::to_owned), ..ObjectMeta::default() };
        owners::set_controller(&mut book, &self.ships, &ship.metadata).map_err(Error::other)?;
        let name = format!("{}-log", key.name);
        let book = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"ship": key.name},
            "metadata": {"name": name, "ownerReferences": book.owner_references},
        });
        let books = Objects::new(&self.client, &CONFIG_MAPS.resource(), key.namespace());
        books.apply::<Value>(&name, &Apply::new("harbour").force(), &book).await?;
        if let Some(conditions) = conditions {
            let version = &ship.metadata.resource_version;
            let patch =
                json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}});
            self.objects(key).merge_patch_subresource::<Value>("status", &key.name, &patch).await?;
            let about = Reference {
                api_version: &self.ships.api_version,
                kind: &self.ships.kind,
                namespace: &key.namespace,
                name: &key.name,
                uid: ship.metadata.uid.as_deref().unwrap_or_default(),
            };
            self.recorder.normal(&about, "Sailing", "the log book is open").await;
        }
        Ok(())
    }
}

impl Reconciler for Harbour {
    type Key = ObjectKey;
    type Observed = Ship;
    type Step = Step;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Ship>> {
        self.objects(key).get(&key.name).await
    }

    fn decide(ship: &Ship, now: Timestamp) -> Step {
        match finalizers::stage(&ship.metadata, FINALIZER) {
            Stage::Add => Step::AddFinalizer,
            Stage::CleanUp => Step::CleanUp,
            Stage::Finished => Step::Nothing,
            Stage::Reconcile => {
                let mut conditions = ship.status.conditions.clone();
                let sails = conditions::new("Sailing", ConditionStatus::True, "LogBookOpen", "", now);
                Step::Sail(conditions::set(&mut conditions, sails).then_some(conditions))
            }
        }
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        ship: Ship,
        step: Step,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        let ships = self.objects(key);
        match step {
            Step::Nothing => {}
            Step::AddFinalizer => finalizers::add(&ships, &ship.metadata, FINALIZER).await?,
            Step::Sail(conditions) => self.sail(key, &ship, conditions).await?,
            Step::CleanUp => {
                let clean_up = async {
                    self.clean_ups.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                };
                finalizers::finish(&ships, &ship.metadata, FINALIZER, clean_up).await?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Creates a CRD with a group of its own, so that runs do not collide.
async fn create_crd(bed: &Bed) -> GroupVersionKind {
    let group = format!("{}.example.com", bed.namespace);
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    });
    let crd = json!({
        "metadata": {"name": format!("ships.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": [version],
            "names": {"plural": "ships", "kind": "Ship"},
        },
    });
    Objects::new(&bed.client, &CRDS.resource(), None)
        .create::<Value>(&crd)
        .await
        .expect("the CRD is created");
    GroupVersionKind::gvk(&group, "v1", "Ship")
}

pub async fn a_controller_reconciles_an_object_from_its_creation_to_its_end(bed: Bed) {
    let resolver = Resolver::new(bed.client.clone());
    let unknown = GroupVersionKind::gvk("nowhere.example.com", "v1", "Ship");
    assert!(matches!(resolver.kind(&unknown).await, Err(Error::NoKindMatch { .. })));
    let kind = create_crd(&bed).await;
    // The resolver has an answer from before the CRD, and asks again.
    until("the CRD is served", async || resolver.kind(&kind).await.is_ok()).await;
    let ships = resolver.kind(&kind).await.unwrap().resource;

    let (shutdown, clean_ups) = (Shutdown::new(), Arc::new(AtomicUsize::new(0)));
    let harbour = Harbour {
        client: bed.client.clone(),
        recorder: Recorder::new(bed.client.clone(), "harbour"),
        ships: ships.clone(),
        clean_ups: Arc::clone(&clean_ups),
    };
    let informers = SharedInformers::new(bed.client.clone());
    let controller = Controller::new("harbour", harbour)
        .watch::<Ship, _>(&informers, ListWatch::all(ships), |delta| [delta.key.clone()])
        .run(shutdown.clone());
    let life = async {
        let manifest = json!({
            "apiVersion": format!("{}/v1", kind.group), "kind": "Ship",
            "metadata": {"name": "argo", "namespace": bed.namespace},
        });
        let ships = resolver.objects_of(&manifest).await.unwrap();
        ships.create::<Value>(&manifest).await.unwrap();
        let ship = async || ships.get::<Ship>("argo").await.unwrap();
        let sails =
            async || ship().await.is_some_and(|ship| conditions::is_true(&ship.status.conditions, "Sailing"));
        until("the ship sails", sails).await;
        let book: Value = bed.objects(&CONFIG_MAPS).get("argo-log").await.unwrap().unwrap();
        assert_eq!(book["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(ship().await.unwrap().metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
        let events = async || {
            let events = bed.objects(&EVENTS).list::<Value>(&ListParams::default()).await.unwrap();
            events
                .items
                .iter()
                .any(|event| event["reason"] == "Sailing" && event["involvedObject"]["name"] == "argo")
        };
        until("people are told", events).await;
        ships.delete("argo", &DeleteParams::default()).await.unwrap();
        until("the ship is gone", async || ship().await.is_none()).await;
        assert_eq!(clean_ups.load(Ordering::Relaxed), 1, "the clean-up is done once");
        if bed.is_orlop() {
            let book = async || bed.objects(&CONFIG_MAPS).get::<Value>("argo-log").await.unwrap();
            until("the log book is collected", async || book().await.is_none()).await;
        }
        shutdown.request();
    };
    tokio::join!(controller, life);
}

/// A server that refuses `sendInitialEvents`, as Kubernetes does without WatchList, and counts lists.
#[derive(Clone)]
struct WithoutWatchList {
    client: Client,
    lists: Arc<AtomicUsize>,
}

impl Service<Request<Body>> for WithoutWatchList {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, std::result::Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Wakes<'_>) -> Poll<std::result::Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        if query.contains("sendInitialEvents") {
            let status = json!({"kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid"});
            let refusal = Response::builder().status(422).body(Body::from(status.to_string().into_bytes()));
            return Box::pin(async { Ok(refusal.expect("a status and a body")) });
        }
        if query.contains("limit=") {
            self.lists.fetch_add(1, Ordering::Relaxed);
        }
        let client = self.client.clone();
        Box::pin(async move { client.send(request).await })
    }
}

/// Records the keys that it gets.
struct Notes(Arc<Mutex<BTreeMap<String, usize>>>);

impl Reconciler for Notes {
    type Key = ObjectKey;
    type Observed = ();
    type Step = ();

    async fn observe(&self, _: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<()>> {
        Ok(Some(()))
    }

    fn decide((): &(), _: Timestamp) {}

    async fn execute(&self, key: &ObjectKey, (): (), (): (), _: &Context<ObjectKey>) -> Result<Outcome> {
        *self.0.lock().expect("no reconciler panics").entry(key.name.clone()).or_default() += 1;
        Ok(Outcome::Done)
    }
}

pub async fn an_informer_lists_pages_where_the_server_refuses_initial_events_and_selects_as_it_is_told(
    bed: Bed,
) {
    let maps = bed.objects(&CONFIG_MAPS);
    for number in 0..1100 {
        let labels = if number == 7 { json!({"odd": "yes"}) } else { json!({"pages": "yes"}) };
        let map =
            json!({"metadata": {"name": format!("m{number:04}"), "labels": labels}, "data": {"k": "v"}});
        maps.create::<Value>(&map).await.unwrap();
    }
    let lists = Arc::new(AtomicUsize::new(0));
    let server = WithoutWatchList { client: bed.client.clone(), lists: Arc::clone(&lists) };
    let informers = SharedInformers::new(Client::new(server, "default"));
    let (cache, notes, shutdown) = (Cache::<Value>::default(), Arc::default(), Shutdown::new());
    let by_label = cache.index(|_, map| {
        let labels = map["metadata"]["labels"].as_object();
        labels.into_iter().flatten().map(|(label, _)| label.clone()).collect()
    });
    let selected = ListWatch::all(CONFIG_MAPS).namespace(&bed.namespace).metadata_only();
    let one = ListWatch::all(CONFIG_MAPS)
        .namespace(&bed.namespace)
        .fields("metadata.name=m0005")
        .labels("pages=yes");
    let named = Cache::<Value>::default();
    let controller = Controller::new("notes", Notes(Arc::clone(&notes)))
        .watch_into(&cache, &informers, selected, |delta| [delta.key.clone()])
        .watch_into(&named, &informers, one, |_| None)
        .run(shutdown.clone());
    let noted = |name: &str| notes.lock().unwrap().get(name).copied().unwrap_or_default();
    let work = async {
        until("the last object is reconciled", async || noted("m1099") == 1).await;
        until("all are", async || notes.lock().unwrap().len() >= 1100).await;
        assert_eq!(
            cache.within(&bed.namespace).into_iter().filter(|(name, _)| name.starts_with('m')).count(),
            1100
        );
        assert_eq!(by_label.get("odd")[0].0.name, "m0007");
        assert_eq!(lists.load(Ordering::Relaxed), 3 + 1, "three pages, and one of the selection");
        assert_eq!(cache.all()[0].1.get("data"), None, "only metadata");
        assert_eq!(named.all().len(), 1);
        assert_eq!(named.all()[0].1["data"]["k"], "v");
        maps.merge_patch::<Value>("m0005", &json!({"metadata": {"labels": {"pages": "no"}}})).await.unwrap();
        until("the change is reconciled", async || noted("m0005") == 2).await;
        until("and leaves the selection", async || named.all().is_empty()).await;
        maps.delete("m0006", &DeleteParams::default()).await.unwrap();
        until("the deletion is reconciled", async || noted("m0006") == 2).await;
        assert!(cache.get(&ObjectKey::new(&bed.namespace, "m0006")).is_none());
        shutdown.request();
    };
    tokio::join!(controller, work);
}

pub async fn an_apply_conflicts_unless_it_is_forced_and_a_dry_run_stores_nothing(bed: Bed) {
    let maps = bed.objects(&CONFIG_MAPS);
    let map = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
    maps.apply::<Value>("a", &Apply::new("one"), &map("1")).await.unwrap();
    match maps.apply::<Value>("a", &Apply::new("two"), &map("2")).await {
        Err(Error::ApplyConflict { fields, .. }) => {
            assert_eq!((&*fields[0].field, fields[0].manager()), (".data.k", Some("one")));
        }
        other => panic!("{other:?}"),
    }
    let shown: Value = maps.apply("a", &Apply::new("two").force().dry_run(), &map("2")).await.unwrap();
    assert_eq!(shown["data"]["k"], "2");
    let stored = async || maps.get::<Value>("a").await.unwrap().unwrap()["data"]["k"].clone();
    assert_eq!(stored().await, "1");
    maps.apply::<Value>("a", &Apply::new("two").force(), &map("2")).await.unwrap();
    assert_eq!(stored().await, "2");
    maps.apply::<Value>(
        "a",
        &Apply::new("one"),
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
    )
    .await
    .unwrap();
    assert_eq!(stored().await, "2", "the first manager has lost the field");
}

pub async fn an_event_that_repeats_is_one_object_that_counts(bed: Bed) {
    let recorder = Recorder::new(bed.client.clone(), "harbour");
    let about = Reference { api_version: "v1", kind: "Pod", namespace: &bed.namespace, name: "p", uid: "u" };
    for _ in 0..3 {
        recorder.warning(&about, "Leak", "there is water in the hold").await;
    }
    let list = async || {
        let about = ListParams::default().fields("involvedObject.name=p");
        bed.objects(&EVENTS).list::<Value>(&about).await.unwrap().items
    };
    let events = list().await;
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    assert_eq!(
        (&event["count"], &event["type"], &event["reason"]),
        (&json!(3), &json!("Warning"), &json!("Leak"))
    );
    assert_eq!(event["source"]["component"], "harbour");
    bed.objects(&EVENTS)
        .delete(event["metadata"]["name"].as_str().unwrap(), &DeleteParams::default())
        .await
        .unwrap();
    recorder.warning(&about, "Leak", "there is water in the hold").await;
    assert_eq!(list().await[0]["count"], 4, "an event that has expired is created again");
}

pub async fn every_leadership_has_a_greater_epoch_and_a_deposed_leader_is_refused(bed: Bed) {
    let seconds = Duration::from_secs;
    let timing = Timing::new(seconds(3), Duration::from_millis(2000), Duration::from_millis(500)).unwrap();
    let lease = |holder: &str| Lease {
        client: bed.client.clone(),
        namespace: bed.namespace.clone(),
        name: "harbour-master".to_owned(),
        holder: holder.to_owned(),
        timing,
    };
    let mut epochs: Vec<Epoch> = Vec::new();
    for holder in ["one", "two", "two"] {
        let (shutdown, found, leadership) = (Shutdown::new(), Mutex::new(None), Leadership::default());
        assert!(leadership.check().is_err(), "it is no candidate yet");
        let work = |term: leader::Term| {
            assert_eq!((leadership.epoch(), leadership.check()), (Some(term.epoch), Ok(())));
            *found.lock().unwrap() = Some(term.epoch);
            shutdown.request();
            async move { term.stop.requested().await }
        };
        timeout(PATIENCE, leadership.lead(lease(holder), shutdown.clone(), work))
            .await
            .expect("it leads and stops")
            .expect("its informer runs");
        assert_eq!(leadership.epoch(), None);
        epochs.extend(found.into_inner().unwrap());
    }
    assert_eq!(epochs.len(), 3);
    assert!(epochs.is_sorted_by(|a, b| a < b), "{epochs:?}");
    let mut annotations = BTreeMap::new();
    epochs[1].stamp(&mut annotations);
    assert_eq!([0, 1, 2].map(|leader| epochs[leader].check(&annotations).is_ok()), [false, true, true]);
    let released: Value = bed.objects(&LEASES).get("harbour-master").await.unwrap().unwrap();
    let holder = released["spec"]["holderIdentity"].as_str().unwrap_or_default();
    assert_eq!((holder, &released["spec"]["leaseTransitions"]), ("", &json!(2)));
}
