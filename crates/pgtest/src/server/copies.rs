//! Copies of a server: a fork of its data, and a replica that follows until it is promoted.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::atomic::AtomicU32,
};

use super::{PgServer, Stop, finish};
use crate::{Error, caretaker::Caretaker};

impl PgServer {
    /// Stops the server, copies its data and starts it again; the copy runs as an independent server.
    ///
    /// # Errors
    /// When the data cannot be copied, or one of the two does not start.
    pub fn fork(&mut self) -> Result<Self, Error> {
        self.stop(Stop::Fast)?;
        let mut copy = self.sibling()?;
        copy.copy_from(&self.data())?;
        self.resume()?;
        copy.launch_on_a_free_port()?;
        Ok(copy)
    }

    /// Replaces this server's data by that of a copy, like the restore of a backup.
    ///
    /// # Errors
    /// As [`PgServer::fork`].
    pub fn become_copy(&mut self, mut copy: Self) -> Result<(), Error> {
        copy.stop(Stop::Fast)?;
        self.stop(Stop::Immediate)?;
        let mut remove = self.account.command(Path::new("/bin/rm"));
        finish(remove.arg("-rf").arg(self.data()))?;
        self.copy_from(&copy.data())?;
        self.resume()
    }

    /// Starts a standby that follows this server by asynchronous streaming replication and answers reads.
    ///
    /// # Errors
    /// When the backup fails or the standby does not start.
    pub fn replica(&self) -> Result<Self, Error> {
        let mut replica = self.sibling()?;
        let mut backup = self.account.command(&self.binaries.path("pg_basebackup"));
        backup.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()]);
        backup.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]);
        finish(backup.arg("-D").arg(replica.data()))?;
        replica.launch_on_a_free_port()?;
        Ok(replica)
    }

    /// Disconnects a standby from its primary: it does not receive later commits.
    ///
    /// # Errors
    /// When its settings cannot be changed.
    pub fn detach(&self) -> Result<(), Error> {
        let settings = self.data().join("postgresql.auto.conf");
        let detached = fs::OpenOptions::new().append(true).open(settings);
        let detached = detached.and_then(|mut file| file.write_all(b"primary_conninfo = ''\n"));
        detached.map_err(|error| Error::because("cannot change the settings of the standby", error))?;
        let mut pg_ctl = self.account.command(&self.binaries.path("pg_ctl"));
        finish(pg_ctl.arg("reload").arg("-D").arg(self.data()).arg("-s"))
    }

    /// Promotes a standby and waits until it is a primary.
    ///
    /// # Errors
    /// When the server is no standby or cannot be promoted.
    pub fn promote(&self) -> Result<(), Error> {
        let mut pg_ctl = self.account.command(&self.binaries.path("pg_ctl"));
        finish(pg_ctl.arg("promote").arg("-D").arg(self.data()).args(["-w", "-s"]))
    }

    /// A server that archives its write-ahead log in [`PgServer::archive`].
    ///
    /// # Errors
    /// As [`PgServer::start`].
    pub fn start_archiving() -> Result<Self, Error> {
        let mut server = Self::without_data()?;
        finish(server.account.command(Path::new("/bin/mkdir")).arg(server.archive()))?;
        let command = format!("archive_command=cp %p {}/%f", server.archive().display());
        server.settings = vec!["archive_mode=on".to_owned(), command];
        server.init()?;
        server.launch_on_a_free_port()?;
        Ok(server)
    }

    /// The folder of the archived write-ahead log.
    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.caretaker.folder().join("archive")
    }

    /// A server on a copy of a base backup, with these lines of `postgresql.conf`, which recovers from an archive.
    ///
    /// # Errors
    /// When the backup cannot be copied, or the server does not start.
    pub fn recovered(base: &Path, settings: &str) -> Result<Self, Error> {
        let mut server = Self::without_data()?;
        let data = server.data();
        let copied = std::process::Command::new("cp").arg("-r").arg(base).arg(&data).status();
        let prepared = copied.and_then(|_| {
            let mut file = fs::OpenOptions::new().append(true).open(data.join("postgresql.auto.conf"))?;
            file.write_all(settings.as_bytes())?;
            fs::write(data.join("recovery.signal"), "")
        });
        prepared.map_err(|error| Error::because("cannot prepare the recovery", error))?;
        server.account.take_all(&data)?;
        server.launch_on_a_free_port()?;
        Ok(server)
    }

    /// A server with the same settings and without data.
    fn sibling(&self) -> Result<Self, Error> {
        let folder = Caretaker::folder_for(self.account)?;
        let caretaker = Caretaker::of(&folder, self.account, &self.binaries)?;
        Ok(Self {
            caretaker,
            running: None,
            binaries: self.binaries.clone(),
            account: self.account,
            settings: self.settings.clone(),
            port: 0,
            databases: AtomicU32::new(0),
        })
    }

    fn copy_from(&self, data: &Path) -> Result<(), Error> {
        let mut copy = self.account.command(Path::new("/bin/cp"));
        finish(copy.arg("-a").arg(data).arg(self.data()))
    }
}
