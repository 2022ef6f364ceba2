//! Tests of the roles in the command line, with a role that creates a ConfigMap.

use clap::CommandFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use role::{BoxError, RoleContext};
use serde_json::json;
use server::{Config, Listen, Server};

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
        Ok(Role::new("sample", move |context| create(args.clone(), context)))
    },
};

async fn create(args: SampleArgs, context: RoleContext) -> Result<(), BoxError> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client, "default");
    let map = serde_json::from_value(json!({"metadata": {"name": args.sample_name}}))?;
    maps.create(&PostParams::default(), &map).await?;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_runs_alone_against_any_kubeconfig() {
    let listen = Some(Listen { address: "127.0.0.1:0".parse().unwrap(), advertise: None });
    let server = Server::start(Config { listen, ..Config::in_memory() }).await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, server.kubeconfig().unwrap()).unwrap();
    let path = file.path().to_str().unwrap();
    let found = alone(&[SAMPLE], &matches(&["sample", "--kubeconfig", path, "--sample-name", "mine"]));
    let Alone { role, args } = found.unwrap().unwrap();
    let client = alone::client(args.kubeconfig, args.context).await.unwrap();

    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let created = async {
        while maps.get_opt("mine").await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    };
    alone::run_until(&role, client.clone(), created).await.unwrap();
    let failed = alone::run_until(&role, client, std::future::pending()).await.unwrap_err().to_string();
    assert!(failed.starts_with("the role sample failed: ") && failed.contains("already exists"), "{failed}");
    server.shutdown().await.unwrap();
}
