//! A failover of PostgreSQL to an asynchronous replica that is behind, under load, with three API servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::StreamExt;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::{ClusterRoleBinding, RoleRef, Subject},
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{watcher, watcher::Event},
};
use pgtest::{PgServer, Stop};
use tokio::{task::JoinSet, time::timeout};

use crate::server::{PATIENCE, Server};

/// Writers of each server.
const WRITERS: usize = 2;

/// Writes that are acknowledged before the replica is detached, while it is, and after the failover.
const LOAD: usize = 120;

/// Every revision that any client got, with name and uid of its object, which must be the same for all
/// clients.
#[derive(Default)]
struct Revisions(Mutex<BTreeMap<String, (String, String)>>);

impl Revisions {
    fn note(&self, object: &ConfigMap) {
        let revision = object.resource_version().expect("an object has a resourceVersion");
        let seen = (object.name_any(), object.uid().expect("an object has a uid"));
        let before = held(&self.0).insert(revision.clone(), seen.clone());
        assert!(
            before.as_ref().is_none_or(|before| *before == seen),
            "resourceVersion {revision} is of {seen:?} and was of {before:?}"
        );
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no task panics while it holds the lock")
}

async fn client(server: &Server, user: Option<&str>) -> Client {
    let kubeconfig = Kubeconfig::read_from(&server.kubeconfig).expect("the server is ready");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("the file names a context");
    config.auth_info.impersonate = user.map(str::to_owned);
    Client::try_from(config).expect("its certificates can be used")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// A binding that lets a user do everything.
fn binding(user: &str) -> ClusterRoleBinding {
    let group = "rbac.authorization.k8s.io".to_owned();
    ClusterRoleBinding {
        metadata: named(user),
        role_ref: RoleRef {
            api_group: group.clone(),
            kind: "ClusterRole".to_owned(),
            name: "cluster-admin".to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some(group),
            kind: "User".to_owned(),
            name: user.to_owned(),
            namespace: None,
        }]),
    }
}

/// State that the clients of a test share.
#[derive(Default)]
struct Shared {
    revisions: Revisions,
    acknowledged: Mutex<BTreeSet<String>>,
    count: AtomicUsize,
    ends: AtomicBool,
    /// The names that the informer of each server holds.
    informers: [Mutex<BTreeSet<String>>; 3],
    /// Number of lists of each of them.
    lists: [AtomicUsize; 3],
}

impl Shared {
    async fn until_more(&self, more: usize) {
        let goal = self.count.load(Ordering::Relaxed) + more;
        let enough = async {
            while self.count.load(Ordering::Relaxed) < goal {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, enough).await.expect("writes are acknowledged");
    }
}

/// Creates objects until the test ends, whatever happens to single requests.
async fn write(client: Client, writer: String, shared: Arc<Shared>) {
    let api = Api::<ConfigMap>::default_namespaced(client);
    for number in 0.. {
        if shared.ends.load(Ordering::Relaxed) {
            return;
        }
        // A request that failed may have been committed, so each has a name of its own.
        let object = ConfigMap { metadata: named(&format!("{writer}-{number}")), ..ConfigMap::default() };
        match api.create(&PostParams::default(), &object).await {
            Ok(created) => {
                shared.revisions.note(&created);
                held(&shared.acknowledged).insert(created.name_any());
                shared.count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Keeps the objects of an informer, and lists again on 410.
async fn follow(client: Client, place: usize, shared: Arc<Shared>) {
    let api = Api::<ConfigMap>::default_namespaced(client);
    let mut events = watcher(api, watcher::Config::default()).boxed();
    let mut listed = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                shared.revisions.note(&object);
                listed.insert(object.name_any());
            }
            Ok(Event::InitDone) => {
                *held(&shared.informers[place]) = std::mem::take(&mut listed);
                shared.lists[place].fetch_add(1, Ordering::Relaxed);
            }
            Ok(Event::Apply(object)) => {
                shared.revisions.note(&object);
                held(&shared.informers[place]).insert(object.name_any());
            }
            Ok(Event::Delete(object)) => {
                held(&shared.informers[place]).remove(&object.name_any());
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// The same user at each of three servers.
type Everywhere = [Client; 3];

async fn everywhere(servers: &[Server; 3], user: Option<&str>) -> Everywhere {
    let [a, b, c] = servers;
    [client(a, user).await, client(b, user).await, client(c, user).await]
}

/// Users whose bindings are created and deleted before, within and after the window that is lost.
struct Users {
    /// Bound before it, unbound after the failover.
    alice: Everywhere,
    /// Bound within it.
    bob: Everywhere,
    /// Bound before it, unbound within it.
    carol: Everywhere,
}

impl Users {
    /// Binds alice and carol.
    async fn prepare(servers: &[Server; 3], bindings: &Api<ClusterRoleBinding>) -> Self {
        let user = |name| everywhere(servers, Some(name));
        let users = Self { alice: user("alice").await, bob: user("bob").await, carol: user("carol").await };
        for name in ["alice", "carol"] {
            bindings.create(&PostParams::default(), &binding(name)).await.expect("the binding is created");
        }
        users.until_may_read([true, false, true]).await;
        users
    }

    /// Binds bob and unbinds carol, which is acknowledged and enforced on all servers.
    async fn change(&self, bindings: &Api<ClusterRoleBinding>) {
        bindings.create(&PostParams::default(), &binding("bob")).await.expect("the binding is created");
        bindings.delete("carol", &DeleteParams::default()).await.expect("the binding is deleted");
        self.until_may_read([true, true, false]).await;
    }

    /// Waits until all servers authorize alice, bob and carol as expected.
    async fn until_may_read(&self, [alice, bob, carol]: [bool; 3]) {
        until_may_read(&self.alice, alice).await;
        until_may_read(&self.bob, bob).await;
        until_may_read(&self.carol, carol).await;
    }
}

async fn until_may_read(clients: &[Client], expected: bool) {
    for client in clients {
        let secrets = Api::<Secret>::default_namespaced(client.clone());
        let decided = async {
            loop {
                match secrets.list(&ListParams::default()).await {
                    Ok(_) if expected => return,
                    Err(kube::Error::Api(status)) if !expected && status.is_forbidden() => return,
                    _ => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        timeout(PATIENCE, decided).await.unwrap_or_else(|_| panic!("access is not {expected}"));
    }
}

/// Waits until every informer holds the objects of the database; each has listed again since `lists`.
async fn until_relisted(shared: &Shared, lists: [usize; 3], truth: &BTreeSet<String>) {
    for (place, listed) in lists.into_iter().enumerate() {
        let told = async {
            while *held(&shared.informers[place]) != *truth {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, told).await.expect("the informer holds what is there");
        assert!(shared.lists[place].load(Ordering::Relaxed) > listed, "the informer listed again");
    }
}

/// SIGKILL to the primary, promotion of the replica.
async fn fail_over(mut primary: PgServer, replica: PgServer) -> (PgServer, PgServer) {
    let failing = tokio::task::spawn_blocking(move || {
        primary.stop(Stop::Kill).expect("it can be killed");
        replica.promote().expect("it can be promoted");
        (primary, replica)
    });
    failing.await.expect("it does not panic")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_loses_commits_reuses_no_revision_and_no_deleted_or_lost_binding_grants() {
    let folder = tempfile::tempdir().unwrap();
    let primary = PgServer::start().unwrap();
    let url = primary.create_database().unwrap();
    let replica = primary.replica().unwrap();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port());
    let url = url.replace(&format!("127.0.0.1:{}", primary.port()), &hosts);
    let url = format!("{url}?target_session_attrs=read-write");
    let alone = ["--postgres", &url, "--controllers="];
    let server = async |name: &str| Server::start("serve", &folder.path().join(name), &alone).await;
    let servers = [server("first").await, server("second").await, server("third").await];
    let admins = everywhere(&servers, None).await;
    let bindings = admins.clone().map(Api::<ClusterRoleBinding>::all);
    let users = Users::prepare(&servers, &bindings[0]).await;

    let shared = Arc::new(Shared::default());
    let (mut writers, mut informers) = (JoinSet::new(), JoinSet::new());
    for (place, admin) in admins.iter().enumerate() {
        informers.spawn(follow(admin.clone(), place, Arc::clone(&shared)));
        for writer in 0..WRITERS {
            writers.spawn(write(admin.clone(), format!("s{place}-w{writer}"), Arc::clone(&shared)));
        }
    }
    shared.until_more(LOAD).await;
    replica.detach().unwrap();
    users.change(&bindings[2]).await;
    shared.until_more(LOAD).await;
    let before = held(&shared.acknowledged).clone();
    let lists = [0, 1, 2].map(|place| shared.lists[place].load(Ordering::Relaxed));
    let killed = Instant::now();
    let (_primary, _promoted) = fail_over(primary, replica).await;
    let promoted = killed.elapsed();
    until_may_read(&users.alice, true).await;
    let answered = killed.elapsed();
    shared.until_more(LOAD).await;

    // The database decides: it lost the binding of bob, and the deletion of carol's.
    users.until_may_read([true, false, true]).await;
    assert!(bindings[1].get_opt("bob").await.unwrap().is_none());
    assert!(bindings[1].get_opt("carol").await.unwrap().is_some());
    bindings[1].delete("alice", &DeleteParams::default()).await.unwrap();
    users.until_may_read([false, false, true]).await;
    shared.ends.store(true, Ordering::Relaxed);
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    let api = Api::<ConfigMap>::default_namespaced(admins[0].clone());
    let truth = api.list(&ListParams::default()).await.unwrap().items;
    truth.iter().for_each(|object| shared.revisions.note(object));
    let truth: BTreeSet<String> = truth.iter().map(ResourceExt::name_any).collect();
    until_relisted(&shared, lists, &truth).await;
    assert!(informers.try_join_next().is_none(), "no informer saw a revision of two objects");
    let acknowledged = held(&shared.acknowledged);
    let lost = acknowledged.difference(&truth).count();
    let later = acknowledged.difference(&before).filter(|name| !truth.contains(*name)).count();
    println!(
        "acknowledged {}, lost {lost}, of those during the failover {later}; promoted after {promoted:?}, all three servers answer \
         after {answered:?}; {} revisions seen",
        acknowledged.len(),
        held(&shared.revisions.0).len()
    );
    assert!(lost > 0, "the replica was behind");
    for server in &servers {
        let log = server.log();
        assert!(log.contains("ending all watches"), "{log}");
    }
}
