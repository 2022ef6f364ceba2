//! Copies of a server: a file-system copy that goes its own way, and a replica that follows until it is promoted.

use std::{fs, io::Write as _, path::Path, sync::atomic::AtomicU32};

use super::{PgServer, Stop, finish};
use crate::{Error, caretaker::Caretaker};

impl PgServer {
    /// Stops the server, copies its data and starts it again; the copy runs as a server of its own.
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

    /// Puts the data of a copy in the place of this server's own, as who restores a backup does it.
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

    /// A standby that follows this server by asynchronous streaming replication, and answers reads.
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

    /// Has a standby receive nothing more: what its primary commits from now on, it does not have.
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

    /// Makes a primary of a standby, and waits until it is one.
    ///
    /// # Errors
    /// When it is none, or cannot be promoted.
    pub fn promote(&self) -> Result<(), Error> {
        let mut pg_ctl = self.account.command(&self.binaries.path("pg_ctl"));
        finish(pg_ctl.arg("promote").arg("-D").arg(self.data()).args(["-w", "-s"]))
    }

    /// A server with the same settings and no data yet.
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
