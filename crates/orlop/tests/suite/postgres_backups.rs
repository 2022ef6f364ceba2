//! Backups of PostgreSQL by its own tools: the documented commands of docs/backup.md, and the clock step
//! behind them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use pgtest::{PgServer, Stop};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::{
    backups::{config_map, names_and_version, version, watch_refusal},
    kube_rs::client,
    server::{PATIENCE, Server},
};

/// The code blocks of docs/backup.md below a heading, one after the other.
fn documented(heading: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backup.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let (_, section) = page.split_once(heading).expect("the page has this heading");
    let section = section.split("\n#").next().unwrap_or(section);
    section.split("```").skip(1).step_by(2).map(str::to_owned).collect()
}

/// The commands of a block.
fn commands(block: &str) -> impl Iterator<Item = &str> {
    block.lines().filter_map(|line| line.strip_prefix("$ "))
}

/// A server on one database that is restored as another.
struct Backup {
    folder: TempDir,
    from: PgServer,
    server: Server,
    maps: Api<ConfigMap>,
}

impl Backup {
    async fn start(from: PgServer) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let url = from.create_database().expect("PostgreSQL runs");
        fs::write(folder.path().join("old"), &url).expect("the folder is writable");
        let data = folder.path().join("data");
        let server = Server::start("serve", &data, &["--postgres", &url, "--controllers="]).await;
        let maps = Api::default_namespaced(client(&server).await);
        Self { folder, from, server, maps }
    }

    /// Creates an object and returns its revision.
    async fn write(&self, name: &str) -> u64 {
        let made = self.maps.create(&PostParams::default(), &config_map(name.to_owned())).await;
        version(&made.expect("the object is created"))
    }

    /// Runs a documented command: $ADDRESS is the old database, $NEW_ADDRESS and FILE the new one of a
    /// PostgreSQL server.
    async fn run(&self, command: &str, at: &PgServer, database: &str) -> String {
        let folder = self.folder.path();
        let new = format!("{}{database}", at.url().trim_end_matches("postgres"));
        let file = folder.join("address");
        fs::write(&file, &new).expect("the folder is writable");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        let binary =
            Path::new(env!("CARGO_BIN_EXE_orlop")).parent().expect("a binary is in a folder").to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [binary, at.programs().to_owned()].into_iter().chain(std::env::split_paths(&path));
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", &command.replace(" FILE", " address")]).current_dir(folder).kill_on_drop(true);
        shell.env("PATH", std::env::join_paths(path).expect("no path has a colon"));
        shell
            .env("ADDRESS", fs::read_to_string(folder.join("old")).expect("it was written at the start"))
            .env("NEW_ADDRESS", new);
        shell.env("PGHOST", "127.0.0.1").env("PGPORT", at.port().to_string()).env("PGUSER", "postgres");
        let output = timeout(PATIENCE, shell.output()).await.expect("it ends").expect("sh can be run");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("the commands print UTF-8")
    }

    /// Starts a server on the restored database, which has the object `kept` and not `lost`, whose revision
    /// clients have seen.
    async fn check(&self, lost: u64) {
        let (address, data) = (self.folder.path().join("address"), self.folder.path().join("data"));
        let arguments = ["--postgres-file", address.to_str().expect("the path is UTF-8"), "--controllers="];
        let server = Server::start("serve", &data, &arguments).await;
        let client = client(&server).await;
        let (names, version) = names_and_version(&client).await;
        assert!(names.contains(&"kept".to_owned()) && !names.contains(&"lost".to_owned()), "{names:?}");
        assert!(version > lost + 1_000_000, "{version} is above {lost}");
        assert_eq!(watch_refusal(&client, lost).await, 410);
    }
}

#[tokio::test]
async fn the_documented_dump_is_restored_with_an_advanced_clock() {
    let blocks = documented("\n### A dump\n");
    let [dump, restore] = &blocks[..] else { panic!("{blocks:?}") };
    let mut backup = Backup::start(PgServer::start().unwrap()).await;
    backup.write("kept").await;
    for command in commands(dump) {
        backup.run(command, &backup.from, "unused").await;
    }
    let lost = backup.write("lost").await;
    backup.server.stop("TERM").await;
    let new = PgServer::start().unwrap();
    assert_eq!(commands(restore).count(), 4, "{restore}");
    for command in commands(restore) {
        backup.run(command, &new, "orlop").await;
    }
    backup.check(lost).await;
}

#[tokio::test]
async fn the_documented_recovery_to_a_point_in_time_has_an_advanced_clock() {
    let blocks = documented("\n### A point in time\n");
    let [base, settings, then] = &blocks[..] else { panic!("{blocks:?}") };
    let mut backup = Backup::start(PgServer::start_archiving().unwrap()).await;
    for command in commands(base) {
        backup.run(command, &backup.from, "unused").await;
    }
    backup.write("kept").await;
    let query = "psql --tuples-only --no-align --command='SELECT clock_timestamp()' \"$ADDRESS\"";
    let time = backup.run(query, &backup.from, "unused").await;
    let lost = backup.write("lost").await;
    backup.server.stop("TERM").await;
    // An orderly shutdown archives the rest of the log.
    backup.from.stop(Stop::Fast).unwrap();
    let archive = backup.from.archive().display().to_string();
    let settings = settings.replace("ARCHIVE", &archive).replace("TIME", time.trim());
    let new = PgServer::recovered(&backup.folder.path().join("BASE"), &settings).unwrap();
    let mut commands = commands(then);
    let recovering = commands.next().unwrap();
    let recovered = async { while backup.run(recovering, &new, "test0").await.trim() != "f" {} };
    timeout(PATIENCE, recovered).await.expect("the recovery ends");
    for command in commands {
        backup.run(command, &new, "test0").await;
    }
    backup.check(lost).await;
}
