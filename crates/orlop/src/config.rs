//! The command line after it was understood: the rest of the program sees nothing else of it.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use apiserver::{admission::Switches, auth::StaticToken};
use cluster_controllers::CONTROLLERS;
use controller::manager::Selection;
use kinds::admission::configuration::AdmissionConfiguration;
use process::{
    listen::ListenAddress,
    logging::LogConfig,
    reload::{Current, NamedFile, Reloader, Updater},
    telemetry::Endpoint,
};
use store::Durability;

use crate::{
    access::Access,
    admission::read_configuration,
    audit::Auditing,
    cli::ServeArgs,
    controllers,
    postgres::PostgresUrl,
    tokens,
    trust::{Trusted, watch_bundle},
};

/// Everything that a process was told.
#[derive(Debug)]
pub(crate) struct Config {
    /// The folder for certificates, kubeconfig and an embedded database; absolute.
    pub(crate) data: PathBuf,
    pub(crate) listen: ListenAddress,
    pub(crate) database: Database,
    /// Warnings for the log at the start: settings that are understood but unsafe.
    pub(crate) warnings: Vec<String>,
    /// The CAs of clients: those of files, to which the server adds its own.
    pub(crate) trust: Updater<Trusted>,
    pub(crate) tokens: Current<Vec<StaticToken>>,
    /// The reloader of the files that the arguments name.
    pub(crate) files: Reloader,
    /// Which admission plugins are on.
    pub(crate) plugins: Switches,
    /// How admission plugins are configured.
    pub(crate) admission: AdmissionConfiguration,
    /// Which controllers are on.
    pub(crate) controllers: Selection,
    /// How long old revisions are kept.
    pub(crate) history: Duration,
    /// How long events stay after they were last written; nothing for ever.
    pub(crate) event_ttl: Duration,
    /// How long a token that an account got by itself may be unused.
    pub(crate) unused_tokens: Duration,
    pub(crate) access: Access,
    /// The audit log.
    pub(crate) audit: Option<Auditing>,
    pub(crate) log: LogConfig,
    pub(crate) otlp_endpoint: Option<Endpoint>,
}

/// Where the objects are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// In this file, inside this process.
    Sqlite { path: PathBuf, durability: Durability },
    /// On a server, which others may use as well.
    Postgres(PostgresUrl),
}

impl Config {
    /// Checks the arguments and reads the files that they name. `environment` looks up a variable.
    pub(crate) fn new(args: ServeArgs, environment: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let ServeArgs {
            data,
            listen,
            postgres,
            durability,
            client_ca_file,
            token_auth_file,
            access,
            log,
            ..
        } = args;
        let plugins = Switches::kubernetes()
            .with(&args.enable_admission_plugins, &args.disable_admission_plugins)
            .context("the admission plugins cannot be switched so")?;
        let admission = read_configuration(args.admission_control_config_file.as_deref(), &plugins)?;
        let controllers =
            Selection::new(&args.controllers, CONTROLLERS, controllers::OWN).context("--controllers")?;
        let postgres = postgres.given(&environment)?;
        let data = data.folder(environment)?;
        let data = std::path::absolute(&data).with_context(|| format!("{} is no folder", data.display()))?;
        let (database, mut warnings) = match postgres {
            None => {
                let path = data.join("orlop.db");
                (Database::Sqlite { path, durability: durability.into() }, Vec::new())
            }
            Some(given) => (Database::Postgres(given.address), given.warnings),
        };
        warnings.extend(admission.warnings.iter().cloned());
        let (mut files, trust) = (Reloader::default(), Updater::new(Trusted::default()).0);
        if let Some(path) = client_ca_file {
            let file = NamedFile { flag: "--client-ca-file", path };
            watch_bundle(&mut files, file, &trust, |trusted| &mut trusted.clients)?;
        }
        let tokens = tokens::follow(&mut files, token_auth_file)?;
        let access = Access::new(access, &mut files, &trust)?;
        Ok(Self {
            data,
            listen: listen.listen,
            database,
            warnings,
            trust,
            tokens,
            files,
            controllers,
            history: args.history,
            event_ttl: args.event_ttl,
            unused_tokens: args.legacy_service_account_token_clean_up_period,
            access,
            audit: args.audit.auditing()?,
            log: log.config(),
            plugins,
            admission,
            otlp_endpoint: args.telemetry.otlp_endpoint,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Role};

    fn config(arguments: &[&str]) -> Result<Config> {
        let cli = Cli::try_parse_from([&["orlop", "up"], arguments].concat())?;
        let Role::Up(arguments) = cli.role else { panic!("this is `up`") };
        Config::new(arguments, |_| Some("/home/me".into()))
    }

    #[test]
    fn the_database_is_a_file_in_the_data_folder_unless_a_server_is_given() {
        let embedded = config(&["--data", "/data"]).unwrap();
        let path = "/data/orlop.db".into();
        assert_eq!(embedded.database, Database::Sqlite { path, durability: Durability::Full });
        let server = config(&["--postgres", "postgres://me:secret@db/x"]).unwrap();
        let url = "postgres://me:secret@db/x".to_owned();
        let passfile = Some("/home/me".into());
        assert_eq!(server.database, Database::Postgres(PostgresUrl { url, passfile }));
        assert!(!format!("{server:?}").contains("secret"));
    }

    #[test]
    fn the_data_folder_is_absolute_as_the_kubeconfig_s_path_is_for_other_terminals() {
        assert!(config(&["--data", "try"]).unwrap().data.is_absolute());
    }

    #[test]
    fn files_that_are_not_there_are_named_with_their_flag() {
        for flag in [
            "--client-ca-file",
            "--token-auth-file",
            "--service-account-key-file",
            "--service-account-signing-key-file",
            "--requestheader-client-ca-file",
        ] {
            let error = format!("{:#}", config(&[flag, "/nowhere"]).unwrap_err());
            assert!(error.starts_with("cannot read /nowhere") && error.contains(flag), "{error}");
        }
    }

    #[test]
    fn plugins_are_switched_by_name_and_unknown_ones_refused() {
        let switched = config(&["--disable-admission-plugins", "Priority,ResourceQuota"]).unwrap();
        assert!(!switched.plugins.is_on("Priority") && switched.plugins.is_on("LimitRanger"));
        let error = format!("{:#}", config(&["--enable-admission-plugins=Nope"]).unwrap_err());
        assert!(error.ends_with("enable-admission-plugins plugin \"Nope\" is unknown"), "{error}");
    }

    #[test]
    fn plugins_are_configured_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admission.yaml");
        let flag = format!("--admission-control-config-file={}", path.display());
        let error = format!("{:#}", config(&[&flag]).unwrap_err());
        assert!(error.contains("unable to read admission control configuration"), "{error}");
        let security = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, \
                        defaults: {enforce: baseline}}";
        let plugins = format!("[{{name: PodSecurity, configuration: {security}}}, {{name: EventRateLimit}}]");
        let kind = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration";
        fs::write(&path, format!("{kind}\nplugins: {plugins}\n")).unwrap();
        let config = config(&[&flag]).unwrap();
        assert_eq!(config.admission.pod_security.defaults.enforce.to_string(), "baseline:latest");
        assert_eq!(config.warnings.len(), 1, "EventRateLimit is not on");
    }

    #[test]
    fn controllers_are_switched_as_in_kubernetes_and_unknown_ones_refused() {
        let is_on = |list| config(&[list]).unwrap().controllers.is_on("namespace-controller");
        assert!(config(&[]).unwrap().controllers.is_on("namespace-controller"));
        assert!(is_on("--controllers=namespace-controller"));
        assert!(!is_on("--controllers=*,-namespace-controller"));
        assert!(!is_on("--controllers=-namespace-controller"));
        let error = format!("{:#}", config(&["--controllers=*,-nope"]).unwrap_err());
        assert!(error.contains("\"nope\" is not in the list of known controllers: "), "{error}");
    }

    #[test]
    fn a_bad_token_line_is_named_with_file_and_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "t1,jane,1\nt2,joe\n").unwrap();
        let path = file.path().to_str().unwrap();
        let error = format!("{:#}", config(&["--token-auth-file", path]).unwrap_err());
        assert!(error.contains(path) && error.contains("line 2") && !error.contains("t2"), "{error}");
    }
}
