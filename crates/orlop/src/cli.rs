//! The command line as it is typed, with the help that teaches it.

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

/// A Kubernetes control plane in one program, with all of its state in SQL
#[derive(Debug, Parser)]
#[command(name = "orlop", version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) role: Role,
}

const EXAMPLES: &str = "\
Examples:
  orlop up                                  everything on this machine, in a folder of your own
  orlop up --data ./try --listen 127.0.0.1:0
                                            the same, in another folder and on any free port
  orlop serve --postgres postgres://user@host/db
                                            one of many API servers on one database
  orlop backup nightly.tar                  database and keys in one file, while the server runs

Then, in another terminal, with the path that was printed:
  export KUBECONFIG=~/.local/share/orlop/kubeconfig
  kubectl get namespaces";

/// What this process is.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Run everything on one machine: the quickest way to a Kubernetes API
    ///
    /// The first start makes a folder with an authority, certificates, a kubeconfig and a database; the next start
    /// uses them again. Ctrl-C stops it; what was written stays.
    #[command(after_help = UP_EXAMPLES)]
    Up(ServeArgs),

    /// Run the API server alone
    ///
    /// It keeps nothing but certificates in its folder when the data is in PostgreSQL, so that many of them can serve
    /// one database. Servers that share clients need the same authority and the same key for tokens: copy
    /// DIR/pki/ca.crt, DIR/pki/ca.key and DIR/pki/sa.key from the first to the others before their first start.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),

    /// Write the database and the keys of a server into one file, while the server runs
    ///
    /// The archive has every write that was acknowledged before it began. It holds the keys of the server: keep it as
    /// safe as the server itself. A server on PostgreSQL is backed up with PostgreSQL's tools, see docs/backup.md.
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),

    /// Lay out a backup in a data directory, such that no client takes it for the state that it knows
    ///
    /// The clock is advanced past every revision that clients of the lost server may have seen, and older revisions
    /// expire: watches and lists from them get 410, and clients read everything anew.
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),

    /// Check a database and the files beside it, without changing them
    ///
    /// Says for each failure what to do; the exit code is 1 where there is any. A database file is checked while no
    /// server runs on it, PostgreSQL at any time.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),

    /// Be kube-apiserver, with its flags: for tools that start one (a link of that name does the same)
    #[command(disable_help_flag = true)]
    KubeApiserver {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },

    /// Be etcd, with its flags: what keeps the objects of that kube-apiserver
    #[command(disable_help_flag = true)]
    Etcd {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
}

const BACKUP_EXAMPLES: &str = "\
Examples:
  orlop backup nightly.tar                  of the server in the usual folder
  orlop backup --data /var/lib/orlop /backup/orlop.tar
  orlop backup --kubeconfig admin.conf orlop.tar
                                            of a server on another machine, without its keys";

const RESTORE_EXAMPLES: &str = "\
Examples:
  orlop restore nightly.tar --data /var/lib/orlop
  orlop restore nightly.tar --force         what is there is kept beside it
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

/// What the API server takes.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) listen: ListenArgs,

    #[command(flatten)]
    pub(crate) postgres: PostgresArgs,

    /// What an acknowledged write in DIR/orlop.db survives
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, conflicts_with_all = ["postgres", "postgres_file"])]
    pub(crate) durability: DurabilityArg,

    /// Trust client certificates of the CAs in this PEM file, too
    ///
    /// The user is the certificate's CN, the groups are its Os. At least one of the CAs has to be valid. The file is reloaded
    /// when it changes, as all files of CAs, tokens and keys are; one that cannot be used leaves the content before in use.
    #[arg(long, value_name = "FILE", help_heading = auth::HEADING)]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Accept the bearer tokens in this file
    ///
    /// One line for each, as Kubernetes has them: TOKEN,USER,UID or TOKEN,USER,UID,"GROUP1,GROUP2"
    #[arg(long, value_name = "FILE", help_heading = auth::HEADING)]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Switch these admission plugins on, too
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "What may be written")]
    pub(crate) enable_admission_plugins: Vec<String>,

    /// Switch these admission plugins off
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "What may be written")]
    pub(crate) disable_admission_plugins: Vec<String>,

    /// Configure admission plugins by this file, an AdmissionConfiguration as Kubernetes has it
    ///
    /// Pod Security standards, and credentials for webhooks by kubeConfigFile. Files that it names are found beside it.
    #[arg(long, value_name = "FILE", help_heading = "What may be written")]
    pub(crate) admission_control_config_file: Option<PathBuf>,

    /// Run these controllers
    ///
    /// A list in which '*' stands for all of them, NAME switches one on and -NAME switches one off, as in
    /// kube-controller-manager: --controllers='*,-namespace-controller', or --controllers='' for none.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true,
        help_heading = "What is kept in order"
    )]
    pub(crate) controllers: Vec<String>,

    /// Delete Events so long after they were last written, 0 for never
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1h",
        value_parser = go_flags::parse_duration,
        help_heading = "What is kept in order"
    )]
    pub(crate) event_ttl: Duration,

    /// Keep old revisions for this long, at least 10s
    ///
    /// Watches that resume and lists that continue need them. History that takes more than 1 GiB is compacted earlier.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15m",
        value_parser = parse_history,
        help_heading = "What is kept in order"
    )]
    pub(crate) history: Duration,

    /// Refuse tokens of Secrets that their account lists when they have not been used for so long, and delete them after as long again
    #[arg(
        long,
        value_name = "TIME",
        default_value = "8760h",
        value_parser = go_flags::parse_duration,
        help_heading = "What is kept in order"
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

/// The shortest `--history`: a client has to come to the second page of a list.
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
    /// A loss of power: each commit waits for the disk
    #[default]
    Power,
    /// The end of the process: faster, but a loss of power may take the last commits
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
    fn history_is_kept_for_a_quarter_of_an_hour_unless_somebody_gives_a_time_that_makes_sense() {
        let history = |arguments: &[&str]| {
            let cli = Cli::try_parse_from(["orlop", "up"].iter().chain(arguments));
            cli.map(|cli| match cli.role {
                Role::Up(args) => args.history,
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
