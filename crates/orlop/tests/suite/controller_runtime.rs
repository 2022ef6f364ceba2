//! A manager of controller-runtime, which installs a CRD and reconciles its objects.

use crate::clients::{Client, from_go};
use crate::server::Server;

#[tokio::test]
async fn a_controller_runtime_manager_reconciles_a_crd() {
    let Some(program) = from_go("manager") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    Client { program, server: &server, folder: folder.path() }.run("").await;
}
