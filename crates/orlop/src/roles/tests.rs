//! Tests of the roles in the command line, with a role that creates a ConfigMap.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use clap::CommandFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use prometheus_client::metrics::counter::Counter;
use role::{BoxError, RoleContext};
use serde_json::json;
use server::{Config, Listen, Server};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use super::*;
use crate::cli::Cli;

/// The flags of the sample.
#[derive(Args, Clone)]
struct SampleArgs {
    /// Name of the ConfigMap
    #[arg(long, value_name = "NAME", default_value = "sample")]
    sample_name: String,
}

const SAMPLE: RoleDefinition = RoleDefinition {
    name: "sample",
    about: "Create a ConfigMap",
    flags: SampleArgs::augment_args,
    configure: |matches| {
        let args = SampleArgs::from_arg_matches(matches)?;
        if args.sample_name.is_empty() {
            return Err("--sample-name is empty".into());
        }
        let created: Counter = Counter::default();
        let shown = created.clone();
        Ok(Role::new("sample", move |context| create(args.clone(), created.clone(), context)).metrics(
            move |registry| registry.register("sample_created", "ConfigMaps of the role", shown.clone()),
        ))
    },
};

async fn create(args: SampleArgs, created: Counter, context: RoleContext) -> Result<(), BoxError> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client, "default");
    let map = serde_json::from_value(json!({"metadata": {"name": args.sample_name}}))?;
    maps.create(&PostParams::default(), &map).await?;
    created.inc();
    context.readiness.ready();
    context.shutdown.requested().await;
    Ok(())
}

fn matches(arguments: &[&str]) -> ArgMatches {
    let command = add_to(Cli::command(), &[SAMPLE]);
    command.try_get_matches_from([&["orlop"], arguments].concat()).unwrap()
}

#[test]
fn the_command_line_is_consistent_with_roles() {
    add_to(Cli::command(), &[SAMPLE]).debug_assert();
    add_to(Cli::command(), ROLES).debug_assert();
}

#[test]
fn flags_of_a_role_leave_the_description_of_a_command_as_it_is() {
    let help = |roles: &[RoleDefinition], name: &str| {
        let mut command = add_to(Cli::command(), roles);
        command.find_subcommand_mut(name).unwrap().render_long_help().to_string()
    };
    let description = |help: &str| help.split("Usage: ").next().unwrap().to_owned();
    assert_eq!(description(&help(&[SAMPLE], "sample")), "Create a ConfigMap\n\n");
    let up = help(&[SAMPLE], "up");
    assert_eq!(description(&up), description(&help(&[], "up")));
    assert!(up.contains("\nsample:\n") && up.contains("--no-sample"), "{up}");
}

#[test]
fn up_runs_every_role_that_is_not_switched_off_and_serve_runs_none() {
    let names = |arguments: &[&str]| -> Vec<&str> {
        let roles = selected(&[SAMPLE], &matches(arguments)).unwrap();
        roles.iter().map(Role::name).collect()
    };
    assert_eq!(names(&["up"]), ["sample"]);
    assert_eq!(names(&["up", "--sample-name", "x", "--data", "/d"]), ["sample"]);
    assert_eq!(names(&["up", "--no-sample"]), [""; 0]);
    assert_eq!(names(&["serve"]), [""; 0]);
}

#[test]
fn flags_of_a_role_are_validated_before_anything_starts() {
    let error = selected(&[SAMPLE], &matches(&["up", "--sample-name="])).unwrap_err();
    assert_eq!(format!("{error:#}"), "cannot configure sample: --sample-name is empty");
    let error = alone(&[SAMPLE], &matches(&["sample", "--sample-name="])).unwrap().unwrap_err();
    assert_eq!(format!("{error:#}"), "cannot configure sample: --sample-name is empty");
    assert!(alone(&[SAMPLE], &matches(&["up"])).is_none());
}

/// Far longer than an answer takes on a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The status line, head and body of an answer.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: role\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Waits until an answer has this text, and returns the answer.
async fn until_has(address: SocketAddr, path: &str, text: &str) -> String {
    let waiting = async {
        loop {
            let answer = get(address, path).await;
            if answer.contains(text) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{path} never has {text:?}"))
}

/// A client without a server.
fn nowhere() -> kube::Client {
    kube::Client::try_from(kube::Config::new(http::Uri::from_static("http://[::1]:9"))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_runs_alone_against_any_kubeconfig_with_health_checks_and_metrics() {
    let listen = Some(Listen { address: "127.0.0.1:0".parse().unwrap(), advertise: None });
    let server = Server::start(Config { listen, ..Config::in_memory() }).await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, server.kubeconfig().unwrap()).unwrap();
    let path = file.path().to_str().unwrap();
    let found = alone(&[SAMPLE], &matches(&["sample", "--kubeconfig", path, "--sample-name", "mine"]));
    let Alone { role, args } = found.unwrap().unwrap();
    let client = alone::client(args.kubeconfig.as_deref(), None, |_| None).await.unwrap();

    let (health, address) = listener().await;
    let probed = async {
        let ready = until_has(address, "/readyz?verbose", "[+]role/sample ok").await;
        assert!(ready.starts_with("HTTP/1.1 200 ") && ready.ends_with("readyz check passed\n"), "{ready}");
        let metrics = get(address, "/metrics").await;
        assert!(metrics.contains("\nsample_created_total 1\n"), "{metrics}");
        assert!(metrics.contains("# TYPE workqueue_depth gauge"), "{metrics}");
    };
    alone::run_until(&role, client.clone(), health, probed).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the endpoints end with the role");
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    maps.get("mine").await.unwrap();

    let (health, _) = listener().await;
    let failed = alone::run_until(&role, client, health, std::future::pending()).await;
    let failed = failed.unwrap_err().to_string();
    assert!(failed.starts_with("the role sample failed: ") && failed.contains("already exists"), "{failed}");
    server.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_role_that_cannot_start_is_alive_and_not_ready_until_it_fails() {
    let gives_up = Arc::new(Notify::new());
    let told = Arc::clone(&gives_up);
    let role = Role::new("harbour", move |context: RoleContext| {
        let told = Arc::clone(&told);
        async move {
            context.readiness.not_ready("the harbour is closed");
            told.notified().await;
            Err("no ship can enter".into())
        }
    });
    let (health, address) = listener().await;
    let probed = async {
        until_has(address, "/readyz/role/harbour", "internal server error: the harbour is closed\n").await;
        let ready = get(address, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 500 "), "{ready}");
        assert!(ready.contains("[-]role/harbour failed: reason withheld\n"), "{ready}");
        assert!(get(address, "/livez").await.starts_with("HTTP/1.1 200 "));
        gives_up.notify_one();
        std::future::pending().await
    };
    let ended = tokio::time::timeout(PATIENCE, alone::run_until(&role, nowhere(), health, probed)).await;
    let failed = ended.expect("the endpoints end with the role").unwrap_err();
    assert_eq!(failed.to_string(), "the role harbour failed: no ship can enter");
    assert!(TcpStream::connect(address).await.is_err(), "the endpoints end with the role");
}

#[tokio::test]
async fn a_role_whose_crds_cannot_be_installed_is_not_ready_and_stops() {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.example.com"},
        "spec": {"group": "example.com", "names": {"plural": "ships", "kind": "Ship"}, "versions": [{"name": "v1", "served": true}]},
    });
    let role = Role::new("harbour", |_| async { panic!("it starts without its CRDs") }).crd(crd);
    let (health, address) = listener().await;
    let probed = async {
        let reason = "the CRDs of the role are not installed yet";
        until_has(address, "/readyz/role/harbour", reason).await;
    };
    alone::run_until(&role, nowhere(), health, probed).await.unwrap();
}

#[test]
fn health_checks_are_served_on_loopback_unless_another_address_is_given() {
    let address = |arguments: &[&str]| {
        alone(&[SAMPLE], &matches(arguments)).unwrap().unwrap().args.health_listen.to_string()
    };
    assert_eq!(address(&["sample"]), "127.0.0.1:8081");
    assert_eq!(address(&["sample", "--health-listen", "0.0.0.0:9"]), "0.0.0.0:9");
}

#[test]
fn a_pod_uses_its_service_account_unless_kubeconfig_is_set() {
    for (host, kubeconfig, expected) in
        [("", "", false), ("10.0.0.1", "", true), ("10.0.0.1", "/a:/b", false), ("", "/a", false)]
    {
        let environment = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => Some(host.into()),
            "KUBECONFIG" => Some(kubeconfig.into()),
            _ => None,
        };
        assert_eq!(alone::is_service_account_meant(environment), expected, "{host} {kubeconfig}");
    }
}

#[tokio::test]
async fn an_unusable_kubeconfig_is_named_with_its_flag() {
    let error = alone::client(Some("/no/such/file".as_ref()), None, |_| None).await.err().unwrap();
    let text = format!("{error:#}");
    let expected = "cannot use /no/such/file, which --kubeconfig names: cannot load the kubeconfig: ";
    assert!(text.starts_with(expected), "{text}");
}
