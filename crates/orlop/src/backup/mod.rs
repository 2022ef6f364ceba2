//! `orlop backup`: writes database and keys of a running server into one file.

pub(crate) mod archive;
mod progress;
mod source;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use process::{
    args::DataArgs,
    files::{Access, Draft},
};
use store::sqlite;

use self::{
    archive::{DATABASE, Manifest, Writer},
    progress::{Progress, size},
    source::Source,
};

/// Arguments of `orlop backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    data: DataArgs,

    /// Back up the server of this kubeconfig instead of the one in DIR
    ///
    /// Its user needs the verb get on the non-resource URL /orlop/backup, as cluster administrators have. A server sends
    /// its database but never its keys: give --data DIR as well to add the keys if they are on this machine.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Archive to write; an existing one is replaced when the new one is complete
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Creates a backup, and prints its content.
pub(crate) async fn run(args: BackupArgs, environment: impl Fn(&str) -> Option<OsString>) -> Result<()> {
    let is_remote = args.kubeconfig.is_some();
    let data = (args.data.is_given() || !is_remote).then(|| args.data.folder(environment)).transpose()?;
    let source = match (args.kubeconfig, &data) {
        (Some(kubeconfig), _) => source::from_server(&kubeconfig).await?,
        (None, Some(data)) => of_folder(data).await?,
        (None, None) => unreachable!("without a kubeconfig there is a folder"),
    };
    let file = args.file.clone();
    let manifest = write(source, file, data).await?;
    let shown = args.file.display();
    let _ = writeln!(
        std::io::stdout(),
        "{shown} has revision {} ({}), {}",
        manifest.database.revision,
        size(fs::metadata(&args.file)?.len()),
        if manifest.has_keys() { "with the keys of the server: keep it safe" } else { "without keys" }
    );
    Ok(())
}

/// The database of a data folder: from its running server, or from the file itself.
async fn of_folder(data: &Path) -> Result<Source> {
    let (database, kubeconfig) = (data.join(DATABASE), data.join("kubeconfig"));
    let is_file = database.exists();
    ensure!(
        is_file || kubeconfig.exists(),
        "there is neither a database nor a kubeconfig in {}: name the data directory of a server with --data DIR",
        data.display()
    );
    if is_file && !sqlite::is_in_use(&database) {
        return tokio::task::spawn_blocking(move || source::from_file(&database)).await?;
    }
    source::from_server(&kubeconfig).await
}

async fn write(source: Source, file: PathBuf, data: Option<PathBuf>) -> Result<Manifest> {
    let Source { contents, bytes, reader, pump } = source;
    let writing = tokio::task::spawn_blocking(move || {
        let cannot = || format!("cannot write {}", file.display());
        let mut draft = Draft::beside(&file, Access::Private).with_context(cannot)?;
        let mut writer = Writer::new(draft.file(), SystemTime::now());
        writer.add(DATABASE, bytes, Progress::new(reader, bytes))?;
        for path in data.iter().flat_map(|data| keys(data)) {
            let found = data.as_deref().unwrap_or(Path::new("")).join(&path);
            let content = fs::read(&found).with_context(|| format!("cannot read {}", found.display()))?;
            writer.add(&path, content.len() as u64, &content[..])?;
        }
        let manifest = writer.finish(contents)?;
        draft.commit().with_context(cannot)?;
        anyhow::Ok(manifest)
    });
    let pumping = async {
        if let Some(pump) = pump {
            pump.run().await;
        }
    };
    let (written, ()) = tokio::join!(writing, pumping);
    written?
}

/// The kubeconfig and the files of the folder `pki`, sorted.
fn keys(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data.join("pki")).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter(|entry| File::open(entry.path()).is_ok() && entry.path().is_file());
    let mut paths: Vec<_> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .map(|name| format!("pki/{name}"))
        .collect();
    if data.join("kubeconfig").exists() {
        paths.push("kubeconfig".to_owned());
    }
    paths.sort();
    paths
}
