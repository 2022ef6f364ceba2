//! Values that follow files while the process runs: CA bundles, token files, keys.
//!
//! One task polls all files. Unusable content is logged and changes nothing: the previous value stays in use.

use std::{
    convert::Infallible,
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use ring::digest::{SHA256, digest};
use thiserror::Error;
use tokio::sync::watch;

use crate::{Shutdown, supervisor::TaskError};

/// The interval at which files are polled.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The size limit of a file.
const MAX_LENGTH: u64 = 64 << 20;

/// A value that may be replaced at any time. Cheap to clone; all clones share the value.
pub struct Current<T>(watch::Receiver<Arc<T>>);

impl<T> Current<T> {
    /// A value that never changes.
    pub fn fixed(value: T) -> Self {
        Updater::new(value).1
    }

    /// The present value.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits until the value differs from the one that this clone saw last.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The updater is gone, so the value never changes again.
            std::future::pending().await
        }
    }
}

impl<T> Clone for Current<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Current<T> {
    fn default() -> Self {
        Self::fixed(T::default())
    }
}

impl<T> From<Arc<T>> for Current<T> {
    fn from(value: Arc<T>) -> Self {
        Self(watch::channel(value).1)
    }
}

/// Shows no value, because it may be secret.
impl<T> fmt::Debug for Current<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").finish_non_exhaustive()
    }
}

/// Replaces the value of a [`Current`].
pub struct Updater<T>(watch::Sender<Arc<T>>);

impl<T> Updater<T> {
    /// Starts with this value.
    pub fn new(value: T) -> (Self, Current<T>) {
        let (sender, receiver) = watch::channel(Arc::new(value));
        (Self(sender), Current(receiver))
    }

    /// Creates another reader.
    pub fn current(&self) -> Current<T> {
        Current(self.0.subscribe())
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        self.0.send_replace(Arc::new(value));
    }

    /// Replaces the value by a function of it.
    pub fn update(&self, change: impl FnOnce(&T) -> T) {
        self.0.send_modify(|value| *value = Arc::new(change(value)));
    }
}

impl<T> Clone for Updater<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Updater<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updater").finish_non_exhaustive()
    }
}

/// A file and the flag that names it.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// The flag, such as `--client-ca-file`.
    pub flag: &'static str,
    /// The path of the file.
    pub path: PathBuf,
}

/// A file with its content.
#[derive(Debug)]
pub struct Content {
    /// The path of the file.
    pub path: PathBuf,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

/// Files that cannot be read or used.
#[derive(Debug, Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {path}, which {flag} names: {reason}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The flag that names it.
        flag: &'static str,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The content is rejected.
    #[error("{0}")]
    Unusable(TaskError),
}

/// The result of a reload, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// New content is in use.
    Reloaded,
    /// The previous content stays in use.
    Failed,
}

/// Reloads files. [`Reloader::watch`] loads them for the first time, [`Reloader::run`] polls them.
#[derive(Debug, Default)]
pub struct Reloader {
    sources: Vec<Source>,
}

type Load = Box<dyn FnMut(&[Content]) -> Result<(), TaskError> + Send>;

/// Files that are loaded together.
struct Source {
    name: &'static str,
    files: Vec<NamedFile>,
    load: Load,
    /// The digest of the content in use.
    used: Vec<u8>,
    /// The last failure; a repeated one is not logged again.
    failure: Option<String>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).field("files", &self.files).finish_non_exhaustive()
    }
}

impl Reloader {
    /// Loads files now, and again whenever one of them changes. `name` is for logs and metrics.
    ///
    /// # Errors
    /// When a file cannot be read, or `load` rejects the content.
    pub fn watch<E: Into<TaskError>>(
        &mut self,
        name: &'static str,
        files: Vec<NamedFile>,
        mut load: impl FnMut(&[Content]) -> Result<(), E> + Send + 'static,
    ) -> Result<(), Error> {
        let load: Load = Box::new(move |contents| load(contents).map_err(Into::into));
        let mut source = Source { name, files, load, used: Vec::new(), failure: None };
        source.reload()?;
        // A pipe can be read only once, so it is not polled.
        if source.files.iter().all(|file| fs::metadata(&file.path).is_ok_and(|metadata| metadata.is_file())) {
            self.sources.push(source);
        }
        Ok(())
    }

    /// Loads files now, and again whenever one of them changes, into a value.
    ///
    /// # Errors
    /// When a file cannot be read, or `parse` rejects the content.
    pub fn follow<T: Send + Sync + 'static, E: Into<TaskError>>(
        &mut self,
        name: &'static str,
        files: Vec<NamedFile>,
        parse: impl Fn(&[Content]) -> Result<T, E> + Send + 'static,
    ) -> Result<Current<T>, Error> {
        let slot: Arc<OnceLock<Updater<T>>> = Arc::default();
        let filled = Arc::clone(&slot);
        self.watch(name, files, move |contents| {
            let value = parse(contents).map_err(Into::into)?;
            match filled.get() {
                Some(updater) => updater.set(value),
                None => drop(filled.set(Updater::new(value).0)),
            }
            Ok::<_, TaskError>(())
        })?;
        Ok(slot.get().expect("the first content was loaded").current())
    }

    /// Polls all files at this interval until a stop is requested, and reports each reload and each failure.
    ///
    /// # Errors
    /// Never.
    pub async fn run(
        mut self,
        interval: Duration,
        report: impl Fn(&'static str, Outcome) + Clone + Send + 'static,
        shutdown: Shutdown,
    ) -> Result<(), Infallible> {
        loop {
            tokio::select! {
                () = shutdown.requested() => return Ok(()),
                () = tokio::time::sleep(interval), if !self.sources.is_empty() => {}
            }
            let (mut sources, report) = (self.sources, report.clone());
            let polled = tokio::task::spawn_blocking(move || {
                sources.iter_mut().for_each(|source| source.poll(&report));
                sources
            });
            self.sources = polled.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        }
    }
}

impl Source {
    /// Loads the content if it differs from the one in use.
    fn reload(&mut self) -> Result<bool, Error> {
        let mut contents = Vec::new();
        for NamedFile { flag, path } in &self.files {
            let bytes = read(path).map_err(|reason| Error::Read { path: path.clone(), flag, reason })?;
            contents.push(Content { path: path.clone(), bytes });
        }
        let digests = contents.iter().flat_map(|content| digest(&SHA256, &content.bytes).as_ref().to_vec());
        let found: Vec<u8> = digests.collect();
        if found == self.used {
            return Ok(false);
        }
        (self.load)(&contents).map_err(Error::Unusable)?;
        self.used = found;
        Ok(true)
    }

    fn poll(&mut self, report: &impl Fn(&'static str, Outcome)) {
        let name = self.name;
        match self.reload() {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!(name, "reloaded changed files");
                report(name, Outcome::Reloaded);
            }
            Err(error) => {
                let error = error.to_string();
                if self.failure.as_ref() != Some(&error) {
                    tracing::error!(
                        name,
                        error,
                        "cannot reload changed files; the previous content stays in use"
                    );
                }
                report(name, Outcome::Failed);
                self.failure = Some(error);
                return;
            }
        }
        self.failure = None;
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(5);

    type Reports = Arc<Mutex<Vec<Outcome>>>;

    fn start(path: &Path) -> (Current<String>, Reports, tokio::task::JoinSet<Result<(), Infallible>>) {
        let (updater, current) = Updater::new(String::new());
        let mut reloader = Reloader::default();
        let files = vec![NamedFile { flag: "--file", path: path.to_owned() }];
        let load = move |contents: &[Content]| {
            let text = String::from_utf8(contents[0].bytes.clone())?;
            updater.set(text);
            Ok::<_, std::string::FromUtf8Error>(())
        };
        reloader.watch("file", files, load).unwrap();
        let (reports, mut tasks) = (Reports::default(), tokio::task::JoinSet::new());
        let noted = Arc::clone(&reports);
        let report = move |_: &'static str, outcome| noted.lock().unwrap().push(outcome);
        tasks.spawn(reloader.run(INTERVAL, report, Shutdown::new()));
        (current, reports, tasks)
    }

    async fn until(mut is_so: impl FnMut() -> bool) {
        while !is_so() {
            tokio::time::sleep(INTERVAL).await;
        }
    }

    #[tokio::test]
    async fn a_changed_file_is_loaded_again_and_a_broken_one_leaves_the_value_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let (mut current, reports, _tasks) = start(&path);
        assert_eq!(*current.get(), "one");
        fs::write(&path, "two").unwrap();
        until(|| *current.get() == "two").await;
        current.changed().await;
        assert_eq!(*reports.lock().unwrap(), [Outcome::Reloaded]);

        for break_it in
            [|path: &Path| fs::write(path, [0xff]).unwrap(), |path: &Path| fs::remove_file(path).unwrap()]
        {
            let before = reports.lock().unwrap().len();
            break_it(&path);
            until(|| reports.lock().unwrap()[before..].contains(&Outcome::Failed)).await;
            assert_eq!(*current.get(), "two");
        }
        fs::write(&path, "three").unwrap();
        until(|| *current.get() == "three").await;
    }

    #[test]
    fn a_file_that_cannot_be_used_at_the_start_is_named() {
        let files = |path: &str| vec![NamedFile { flag: "--file", path: path.into() }];
        let error =
            Reloader::default().watch("file", files("/nowhere"), |_| Ok::<_, io::Error>(())).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("cannot read /nowhere") && text.contains("--file"), "{text}");
        let error = Reloader::default()
            .watch("file", files("/dev/null"), |_| Err(io::Error::other("no")))
            .unwrap_err();
        assert_eq!(error.to_string(), "no");
    }

    #[tokio::test]
    async fn files_that_are_not_regular_are_read_once() {
        let mut reloader = Reloader::default();
        let files = vec![NamedFile { flag: "--file", path: "/dev/null".into() }];
        reloader.watch("file", files, |_| Ok::<_, io::Error>(())).unwrap();
        assert!(reloader.sources.is_empty());
    }
}
