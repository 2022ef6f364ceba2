//! The command line and its help.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use process::args::{DataArgs, ListenArgs, LogArgs, TelemetryArgs};

use crate::{
    audit::AuditArgs,
    auth::{self, AuthArgs},
    backup::BackupArgs,
    doctor::DoctorArgs,
    go_flags,
    postgres::PostgresArgs,
    restore::RestoreArgs,
};

/// A Kubernetes control plane in one binary, with its state in SQL
#[derive(Debug, Parser)]
#[command(name = "orlop", version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) action: Action,
}

const EXAMPLES: &str = "\
Examples:
  orlop up                                  run a control plane on this machine
  orlop up --data ./try --listen 127.0.0.1:0
                                            the same, in another folder and on a free port
  orlop serve --postgres postgres://user@host/db
                                            run one of several API servers on one database
  orlop backup nightly.tar                  back up database and keys of a running server

Then, in another terminal, with the printed path:
  export KUBECONFIG=~/.local/share/orlop/kubeconfig
  kubectl get namespaces";

/// A subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Run a control plane on this machine: API server, controllers and roles
    ///
    /// The first start creates a CA, certificates, a kubeconfig and a database in the data folder; later starts reuse
    /// them. Ctrl-C stops the server and keeps the data.
    #[command(after_help = UP_EXAMPLES)]
    Up(ServeArgs),

    /// Run the API server and the controllers, without roles
    ///
    /// With --postgres the data folder contains only certificates and keys, and several servers can share the database.
    /// Servers that share clients need the same CA and the same token signing key: copy DIR/pki/ca.crt, DIR/pki/ca.key
    /// and DIR/pki/sa.key from the first server to the others before their first start.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),

    /// Back up the database and the keys of a running server into one file
    ///
    /// The archive contains every write that was acknowledged before the backup began, and the keys of the server:
    /// protect it like the server itself. Back up PostgreSQL with its own tools, see docs/backup.md.
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),

    /// Restore a backup into a data folder
    ///
    /// The revision clock is advanced past every revision that clients of the lost server may have seen, and older
    /// revisions expire: watches and lists from them get 410 (Expired), and clients list again.
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),

    /// Check a database and the files of a server, without changing them
    ///
    /// Prints a remedy for each failure, and exits with 1 if there is any. A database file is checked while no server
    /// uses it, PostgreSQL at any time.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),

    /// Run as kube-apiserver, with its flags; a link named kube-apiserver does the same
    #[command(disable_help_flag = true)]
    KubeApiserver {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },

    /// Run as etcd, with its flags: the store of that kube-apiserver
    #[command(disable_help_flag = true)]
    Etcd {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
}

const BACKUP_EXAMPLES: &str = "\
Examples:
  orlop backup nightly.tar                  the server in the default data folder
  orlop backup --data /var/lib/orlop /backup/orlop.tar
  orlop backup --kubeconfig admin.conf orlop.tar
                                            a server on another machine, without its keys";

const RESTORE_EXAMPLES: &str = "\
Examples:
  orlop restore nightly.tar --data /var/lib/orlop
  orlop restore nightly.tar --force         existing files are kept in DIR/replaced-TIME
  orlop restore --advance --postgres-file /etc/orlop/postgres
                                            after pg_restore or a point-in-time recovery";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  orlop doctor --data /var/lib/orlop
  orlop doctor --postgres-file /etc/orlop/postgres";

const UP_EXAMPLES: &str = "\
Examples:
  orlop up
  orlop up --data ./try --listen 127.0.0.1:0
  orlop up --log-level debug --otlp-endpoint http://127.0.0.1:4318";

const SERVE_EXAMPLES: &str = "\
Examples:
  orlop serve --listen 192.0.2.7:6443
  orlop serve --postgres postgres://orlop@db.example.org/orlop --data /var/lib/orlop
  orlop serve --postgres-file /etc/orlop/postgres --data /var/lib/orlop
  orlop serve --client-ca-file ca.crt --token-auth-file tokens.csv";

/// The flags of `up` and `serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) listen: ListenArgs,

    #[command(flatten)]
    pub(crate) postgres: PostgresArgs,

    /// Failures that an acknowledged write in DIR/orlop.db survives
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, conflicts_with_all = ["postgres", "postgres_file"])]
    pub(crate) durability: DurabilityArg,

    /// Also accept client certificates signed by the CAs in this PEM file
    ///
    /// The CN is the user, the Os are the groups. At least one CA has to be valid. All CA, token and key files are
    /// reloaded when they change; if a changed file is invalid, the previous content stays in use.
    #[arg(long, value_name = "FILE", help_heading = auth::HEADING)]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Accept the static bearer tokens in this CSV file
    ///
    /// One token per line: TOKEN,USER,UID or TOKEN,USER,UID,"GROUP1,GROUP2"
    #[arg(long, value_name = "FILE", help_heading = auth::HEADING)]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Admission plugins to enable in addition to the default ones
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Admission")]
    pub(crate) enable_admission_plugins: Vec<String>,

    /// Admission plugins to disable
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Admission")]
    pub(crate) disable_admission_plugins: Vec<String>,

    /// Configure admission plugins by this file, an apiserver.config.k8s.io/v1 AdmissionConfiguration
    ///
    /// It configures Pod Security standards, and webhook credentials by kubeConfigFile. Relative paths in it start at
    /// its folder.
    #[arg(long, value_name = "FILE", help_heading = "Admission")]
    pub(crate) admission_control_config_file: Option<PathBuf>,

    /// Controllers to run
    ///
    /// As in kube-controller-manager: '*' means all, NAME enables and -NAME disables one controller, such as
    /// --controllers='*,-namespace-controller'. --controllers='' runs none.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true,
        help_heading = "Controllers and retention"
    )]
    pub(crate) controllers: Vec<String>,

    /// Delete Events this long after their last update; 0 for never
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1h",
        value_parser = go_flags::parse_duration,
        help_heading = "Controllers and retention"
    )]
    pub(crate) event_ttl: Duration,

    /// Keep old revisions for this long, at least 10s
    ///
    /// Watches resume and lists continue from them. History of more than 1 GiB is compacted earlier.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15m",
        value_parser = parse_history,
        help_heading = "Controllers and retention"
    )]
    pub(crate) history: Duration,

    /// Invalidate auto-generated service account token Secrets that were not used for this long; delete them after the
    /// same period again
    #[arg(
        long,
        value_name = "TIME",
        default_value = "8760h",
        value_parser = go_flags::parse_duration,
        help_heading = "Controllers and retention"
    )]
    pub(crate) legacy_service_account_token_clean_up_period: Duration,

    #[command(flatten)]
    pub(crate) auth: AuthArgs,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) telemetry: TelemetryArgs,
}

/// The minimum of `--history`: a client needs time for the next page of a list.
const SHORTEST_HISTORY: Duration = Duration::from_secs(10);

fn parse_history(text: &str) -> Result<Duration, String> {
    let history = go_flags::parse_duration(text)?;
    if history < SHORTEST_HISTORY {
        return Err(
            "it has to be at least 10s: watches resume and lists continue from old revisions".to_owned()
        );
    }
    Ok(history)
}

/// The choices of `--durability`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// Power loss: each commit waits for the disk
    #[default]
    Power,
    /// Process crash: faster, but a power loss may lose the last commits
    Process,
}

impl From<DurabilityArg> for store::Durability {
    fn from(choice: DurabilityArg) -> Self {
        match choice {
            DurabilityArg::Power => Self::Full,
            DurabilityArg::Process => Self::Process,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn history_is_kept_for_fifteen_minutes_unless_a_valid_time_is_given() {
        let history = |arguments: &[&str]| {
            let cli = Cli::try_parse_from(["orlop", "up"].iter().chain(arguments));
            cli.map(|cli| match cli.action {
                Action::Up(args) => args.history,
                _ => panic!("this is up"),
            })
        };
        assert_eq!(history(&[]).unwrap(), Duration::from_secs(15 * 60));
        assert_eq!(history(&["--history", "90s"]).unwrap(), Duration::from_secs(90));
        for nonsense in ["0", "0s", "9s", "-5m", "soon", ""] {
            let error = history(&[&*format!("--history={nonsense}")]).unwrap_err().to_string();
            assert!(error.contains("--history <TIME>"), "{error}");
        }
        let error = history(&["--history", "1s"]).unwrap_err().to_string();
        assert!(error.contains("it has to be at least 10s"), "{error}");
    }

    #[test]
    fn every_example_in_the_help_parses() {
        let lines =
            [EXAMPLES, UP_EXAMPLES, SERVE_EXAMPLES, BACKUP_EXAMPLES, RESTORE_EXAMPLES, DOCTOR_EXAMPLES]
                .join("\n");
        let commands = lines.lines().map(str::trim).filter(|line| line.starts_with("orlop "));
        for line in commands {
            let command = line.split("  ").next().unwrap_or(line);
            Cli::try_parse_from(command.split_whitespace())
                .unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}
