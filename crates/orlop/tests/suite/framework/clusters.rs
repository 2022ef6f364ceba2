//! Clients of clusters whose kubeconfigs are in Secrets.

use std::sync::{Arc, Mutex};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use controller::{
    ListWatch, ObjectKey, Objects, SharedInformers, Subscriptions,
    clusters::{ClusterClients, ClusterError, SecretReference, kubeconfig_file},
};
use kube::{Client, api::DeleteParams, api::ListParams};
use serde_json::{Value, json};

use super::{Bed, NAMESPACES, SECRETS, until};

async fn works(client: &Client) -> bool {
    Objects::new(client, &NAMESPACES.resource(), None)
        .list::<Value>(&ListParams::default().limit(1))
        .await
        .is_ok()
}

pub async fn clients_follow_the_secrets_with_their_kubeconfigs(bed: Bed) {
    let kubeconfig = std::fs::read_to_string(&bed.kubeconfig).expect("the kubeconfig is there");
    assert!(works(&kubeconfig_file(Some(&bed.kubeconfig), None).await.unwrap()).await);
    let secrets = bed.objects(&SECRETS);
    let data = |text: &str| json!({"data": {"value": STANDARD.encode(text)}});
    let mut secret = data(&kubeconfig);
    secret["metadata"] = json!({"name": "cluster-a", "labels": {"cluster": "yes"}});
    secrets.create::<Value>(&secret).await.unwrap();

    let (clients, reference) =
        (ClusterClients::default(), SecretReference::new(&bed.namespace, "cluster-a").field("value"));
    assert!(works(&clients.load(&bed.client, &reference).await.unwrap()).await);
    let missing = SecretReference::new(&bed.namespace, "cluster-b");
    assert!(matches!(clients.load(&bed.client, &missing).await, Err(ClusterError::NoSecret(_))));

    let (subscriptions, changes) = (Subscriptions::default(), Arc::new(Mutex::new(Vec::<ObjectKey>::new())));
    let noted = Arc::clone(&changes);
    let handler =
        clients.handler(move |key| noted.lock().expect("no test panics with the lock").push(key.clone()));
    let labelled = ListWatch::all(SECRETS).namespace(&bed.namespace).labels("cluster=yes");
    subscriptions.add("secrets", &SharedInformers::new(bed.client.clone()), labelled, handler);
    subscriptions.synced().await;
    assert_eq!(subscriptions.check(), Ok(()));
    assert!(works(&clients.get(&reference).await.unwrap()).await);
    assert_eq!(*changes.lock().unwrap(), [reference.secret().clone()]);

    // The Secret now asks the program to run a command.
    let exec = format!(
        "{{current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], clusters: [{{name: k, cluster: {{server: \"{}\"}}}}], \
         users: [{{name: u, user: {{exec: {{command: steal-it, apiVersion: client.authentication.k8s.io/v1}}}}}}]}}",
        "https://127.0.0.1:1"
    );
    secrets.merge_patch::<Value>("cluster-a", &data(&exec)).await.unwrap();
    until("the change is refused", async || clients.get(&reference).await.is_err()).await;
    let error = clients.get(&reference).await.err().unwrap().to_string();
    assert!(error.contains("exec is not allowed") && !error.contains("steal-it"), "{error}");
    secrets.merge_patch::<Value>("cluster-a", &data(&kubeconfig)).await.unwrap();
    until("the client is back", async || clients.get(&reference).await.is_ok()).await;
    let shown = format!("{clients:?}");
    assert!(shown.contains("cluster-a") && shown.len() < 200, "{shown}");
    secrets.delete("cluster-a", &DeleteParams::default()).await.unwrap();
    until("it goes with its Secret", async || {
        matches!(clients.get(&reference).await, Err(ClusterError::NoSecret(_)))
    })
    .await;
    assert_eq!(changes.lock().unwrap().len(), 4, "created, changed twice, deleted");
}
