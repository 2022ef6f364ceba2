//! The example of the framework's front page, as two replicas.

#[path = "../../../../controller/examples/greeter.rs"]
#[allow(dead_code, reason = "the tests do not run its main function")]
mod greeter;

use controller::{ObjectKey, Objects, ResourceKind};
use kube::api::ListParams;
use process::Shutdown;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{Bed, EVENTS, until};

const GREETINGS: ResourceKind =
    ResourceKind { group: "hello.example.com", version: "v1", kind: "Greeting", plural: "greetings" };

struct Replica {
    settings: greeter::Settings,
    health: String,
}

async fn replica(bed: &Bed, holder: &str) -> Replica {
    let [webhook, health] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0"));
    let (webhook, health) = (webhook.await.unwrap(), health.await.unwrap());
    let (url, address) = (
        format!("https://{}/validate", webhook.local_addr().unwrap()),
        health.local_addr().unwrap().to_string(),
    );
    let settings = greeter::Settings {
        namespace: bed.namespace.clone(),
        holder: holder.to_owned(),
        webhook,
        webhook_name: "127.0.0.1".to_owned(),
        client_config: json!({"url": url}),
        health,
    };
    Replica { settings, health: address }
}

async fn get(address: &str, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address).await else { return String::new() };
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

pub async fn the_example_of_the_front_page_runs(bed: Bed) {
    let (one, two, shutdown) = (replica(&bed, "one").await, replica(&bed, "two").await, Shutdown::new());
    let addresses = [one.health.clone(), two.health.clone()];
    let first = greeter::run(bed.client.clone(), one.settings, shutdown.clone());
    let second = greeter::run(bed.client.clone(), two.settings, shutdown.clone());
    let test = async {
        for address in &addresses {
            until("the replica is ready", async || get(address, "/readyz").await.starts_with("HTTP/1.1 200"))
                .await;
        }
        let greetings = Objects::new(&bed.client, &GREETINGS.resource(), Some(&bed.namespace));
        let greeting = |name: &str, spec: Value| json!({"apiVersion": "hello.example.com/v1", "kind": "Greeting", "metadata": {"name": name}, "spec": spec});
        until("a greeting without a name is refused", async || {
            let refused = greetings.create::<Value>(&greeting("nobody", json!({}))).await.err();
            refused.is_some_and(|error| error.to_string().contains("a greeting needs a name"))
        })
        .await;
        greetings.create::<Value>(&greeting("ann", json!({"name": "Ann"}))).await.unwrap();
        let key = ObjectKey::new(&bed.namespace, "ann");
        until("Ann is greeted", async || {
            let ann: Value = greetings.get(&key.name).await.unwrap().unwrap();
            ann["status"]["conditions"][0]["message"] == "Hello, Ann"
        })
        .await;
        until("an event tells it", async || {
            let about = ListParams::default().fields("involvedObject.name=ann,reason=Greeted");
            bed.objects(&EVENTS).list::<Value>(&about).await.unwrap().items.len() == 1
        })
        .await;
        let metrics = [get(&addresses[0], "/metrics").await, get(&addresses[1], "/metrics").await];
        let leaders =
            metrics.iter().filter(|text| text.contains("leader_election_master_status{name=\"greeter\"} 1"));
        assert_eq!(leaders.count(), 1, "{metrics:?}");
        shutdown.request();
    };
    let (first, second, ()) = tokio::join!(first, second, test);
    first.unwrap();
    second.unwrap();
}
