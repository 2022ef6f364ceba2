//! `orlop restore`: unpacks a backup, and advances the revision clock past everything that clients may have seen.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use process::{args::DataArgs, files};
use server::PostgresUrl;
use store::{
    ClockState, Engine, FileOptions, Postgres, PostgresOptions, Sqlite,
    engine::beyond,
    sqlite::{self, Lock},
};

use crate::{
    backup::archive::{self, DATABASE, Manifest},
    postgres::PostgresArgs,
};

/// Arguments of `orlop restore`.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    data: DataArgs,

    /// Restore into a folder that is not empty; replaced files are kept in DIR/replaced-TIME
    #[arg(long, conflicts_with = "advance")]
    force: bool,

    /// Only advance the clock of a database that was restored by other means
    ///
    /// The last step after pg_restore, a point-in-time recovery, or a copy of DIR/orlop.db. Every watch and every list
    /// from an older revision then gets 410 (Expired), and clients list again.
    #[arg(long, conflicts_with = "file", required_unless_present = "file")]
    advance: bool,

    #[command(flatten)]
    postgres: PostgresArgs,

    /// Archive of `orlop backup`
    #[arg(value_name = "FILE", conflicts_with_all = ["postgres", "postgres_file"])]
    file: Option<PathBuf>,
}

/// Restores, and prints the next step.
pub(crate) async fn run(args: RestoreArgs, environment: impl Fn(&str) -> Option<OsString>) -> Result<()> {
    let postgres = args.postgres.given(&environment)?;
    let message = match (args.file, postgres) {
        (Some(file), _) => {
            let data = std::path::absolute(args.data.folder(environment)?)?;
            archived(&file, &data, args.force).await?
        }
        (None, Some(given)) => {
            given.warnings.iter().for_each(|warning| eprintln!("orlop: warning: {warning}"));
            let clock = advance_postgres(&given.address).await?;
            format!(
                "the clock is at revision {}, older revisions have expired: start the servers",
                clock.current
            )
        }
        (None, None) => {
            let data = args.data.folder(environment)?;
            let clock = advance_file(&data.join(DATABASE)).await?;
            format!(
                "the clock is at revision {}, older revisions have expired: start the server",
                clock.current
            )
        }
    };
    crate::print(&format!("{message}\n"));
    Ok(())
}

async fn archived(archive: &Path, data: &Path, force: bool) -> Result<String> {
    let cannot = || format!("cannot write {}", data.display());
    if !force && has_entries(data) {
        bail!(
            "{} is not empty: choose another directory, or give --force to replace what is there",
            data.display()
        );
    }
    files::create_private_folder(data).with_context(cannot)?;
    // A running server holds the lock, and none can start while this process holds it.
    let _lock = Lock::take(&data.join(DATABASE), &data.join(DATABASE).display().to_string())?;
    let scratch = Scratch::within(data).with_context(cannot)?;
    let (from, to) = (archive.to_owned(), scratch.0.clone());
    let manifest = tokio::task::spawn_blocking(move || archive::unpack(&from, &to)).await??;
    let clock = advance_file(&scratch.0.join(DATABASE)).await?;
    let replaced = lay_out(&scratch.0, data).with_context(cannot)?;
    Ok(summary(&manifest, clock, data, replaced.as_deref()))
}

fn summary(manifest: &Manifest, clock: ClockState, data: &Path, replaced: Option<&Path>) -> String {
    let mut text = format!(
        "{} is restored from revision {}; the clock is at {}, older revisions have expired",
        data.display(),
        manifest.database.revision,
        clock.current
    );
    if let Some(replaced) = replaced {
        text += &format!("\nwhat was there is in {}", replaced.display());
    }
    if !manifest.has_keys() && !data.join("pki/ca.key").exists() {
        text += "\nthe archive has no keys: copy pki/ca.crt, pki/ca.key and pki/sa.key of the lost server to \
                 DIR/pki before the first start, or every kubeconfig and every token of a service account is void";
    }
    text
}

fn has_entries(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

async fn advance_file(database: &Path) -> Result<ClockState> {
    ensure!(database.exists(), "there is no database {}", database.display());
    let options = FileOptions::new(database);
    let engine = tokio::task::spawn_blocking(move || Sqlite::open(&options)).await??;
    advance(&engine).await
}

async fn advance_postgres(address: &PostgresUrl) -> Result<ClockState> {
    let mut options = PostgresOptions::default();
    options.passfile.clone_from(&address.passfile);
    advance(&Postgres::open(&address.url, &options).await?).await
}

async fn advance(engine: &dyn Engine) -> Result<ClockState> {
    let seen = engine.clock().await?.current;
    let clock = engine.advance(beyond(seen)).await;
    engine.close().await;
    Ok(clock?)
}

/// Moves the restored files to their places, the database last: a folder without it does not count as restored. Returns the folder
/// with the replaced files, if there were any.
fn lay_out(from: &Path, data: &Path) -> io::Result<Option<PathBuf>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let replaced = data.join(format!("replaced-{now}"));
    // SQLite would apply the write-ahead log of the old database to the new one.
    let mut old = vec![DATABASE.to_owned()];
    old.extend(sqlite::BESIDE.iter().map(|suffix| format!("{DATABASE}{suffix}")));
    let new = ["pki", "kubeconfig"].into_iter().filter(|name| from.join(name).exists());
    old.extend(new.clone().map(str::to_owned));
    for name in old.iter().filter(|name| data.join(name).exists()) {
        files::create_private_folder(&replaced)?;
        fs::rename(data.join(name), replaced.join(name))?;
    }
    for name in new.chain([DATABASE]) {
        fs::rename(from.join(name), data.join(name))?;
    }
    fs::File::open(data)?.sync_all()?;
    Ok(replaced.exists().then_some(replaced))
}

/// A temporary folder inside the data folder, on the same file system; removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn within(data: &Path) -> io::Result<Self> {
        let path = data.join(".restore");
        // Left by an interrupted restore.
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        files::create_private_folder(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
