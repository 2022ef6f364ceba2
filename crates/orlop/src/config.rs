//! The flags of `up` and `serve`, validated: the rest of the program sees only the result.

use std::ffi::OsString;

use anyhow::{Context, Result};
use apiserver::admission::Switches;
use process::{
    logging::LogConfig,
    reload::{NamedFile, Reloader, Updater},
    telemetry::Endpoint,
};
use server::{Certificates, ClientCas, Config, Controllers, Listen, SigningKeySource, Storage, watch_bundle};

use crate::{admission::read_configuration, cli::ServeArgs, tokens};

/// The configuration of `up` and `serve`.
#[derive(Debug)]
pub(crate) struct ServeConfig {
    pub(crate) server: Config,
    /// Warnings for the log at the start: settings that are valid but unsafe or without effect.
    pub(crate) warnings: Vec<String>,
    pub(crate) log: LogConfig,
    pub(crate) otlp_endpoint: Option<Endpoint>,
}

impl ServeConfig {
    /// Validates the flags, and reads the files that they name. `environment` looks up a variable.
    pub(crate) fn new(args: ServeArgs, environment: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let plugins = Switches::kubernetes()
            .with(&args.enable_admission_plugins, &args.disable_admission_plugins)
            .context("invalid selection of admission plugins")?;
        let admission = read_configuration(args.admission_control_config_file.as_deref(), &plugins)?;
        let mut controllers = Controllers::select(&args.controllers).context("--controllers")?;
        controllers.unused_tokens = Some(args.legacy_service_account_token_clean_up_period);
        let postgres = args.postgres.given(&environment)?;
        let data = args.data.folder(environment)?;
        let data = std::path::absolute(&data).with_context(|| format!("{} is no folder", data.display()))?;
        let (storage, mut warnings) = match postgres {
            None => {
                let path = data.join("orlop.db");
                (Storage::Sqlite { path, durability: args.durability.into() }, Vec::new())
            }
            Some(given) => (Storage::Postgres(given.address), given.warnings),
        };
        warnings.extend(admission.warnings.iter().cloned());
        let (mut files, client_cas) = (Reloader::default(), Updater::new(ClientCas::default()).0);
        if let Some(path) = args.client_ca_file {
            let file = NamedFile { flag: "--client-ca-file", path };
            watch_bundle(&mut files, file, &client_cas, |cas| &mut cas.clients)?;
        }
        let tokens = tokens::follow(&mut files, args.token_auth_file)?;
        let mut auth = args.auth.config(&mut files, client_cas, tokens)?;
        if matches!(auth.service_accounts.signing_key, SigningKeySource::Ephemeral) {
            auth.service_accounts.signing_key = SigningKeySource::File(data.join("pki").join("sa.key"));
        }
        let server = Config {
            storage,
            store: store::Options::keeping(args.history),
            listen: Some(Listen { address: args.listen.listen, advertise: None }),
            certificates: Certificates::Folder(data),
            auth,
            files,
            plugins,
            admission,
            audit: args.audit.config()?,
            controllers: Some(controllers),
            event_ttl: args.event_ttl,
            host: process::listen::host_name(),
            ..Config::in_memory()
        };
        let otlp_endpoint = args.telemetry.otlp_endpoint;
        Ok(Self { server, warnings, log: args.log.config(), otlp_endpoint })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Parser;
    use server::PostgresUrl;
    use store::Durability;

    use super::*;
    use crate::cli::{Action, Cli};

    fn configured(arguments: &[&str]) -> Result<ServeConfig> {
        let cli = Cli::try_parse_from([&["orlop", "up"], arguments].concat())?;
        let Action::Up(arguments) = cli.action else { panic!("this is `up`") };
        ServeConfig::new(arguments, |_| Some("/home/me".into()))
    }

    fn config(arguments: &[&str]) -> Result<Config> {
        Ok(configured(arguments)?.server)
    }

    #[test]
    fn the_database_is_a_file_in_the_data_folder_unless_a_server_is_given() {
        let embedded = config(&["--data", "/data"]).unwrap();
        let Storage::Sqlite { path, durability: Durability::Full } = embedded.storage else {
            panic!("{:?}", embedded.storage)
        };
        assert_eq!(path, Path::new("/data/orlop.db"));
        let server = config(&["--postgres", "postgres://me:secret@db/x"]).unwrap();
        let url = "postgres://me:secret@db/x".to_owned();
        let passfile = Some("/home/me".into());
        assert!(!format!("{server:?}").contains("secret"));
        let Storage::Postgres(address) = server.storage else { panic!("{:?}", server.storage) };
        assert_eq!(address, PostgresUrl { url, passfile });
    }

    #[test]
    fn the_data_folder_is_absolute_as_the_kubeconfig_s_path_is_for_other_terminals() {
        let Certificates::Folder(data) = config(&["--data", "try"]).unwrap().certificates else {
            panic!("the certificates are in the data folder")
        };
        assert!(data.is_absolute());
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
        let config = configured(&[&flag]).unwrap();
        assert_eq!(config.server.admission.pod_security.defaults.enforce.to_string(), "baseline:latest");
        assert_eq!(config.warnings.len(), 1, "EventRateLimit is not on");
    }

    #[test]
    fn controllers_are_switched_as_in_kubernetes_and_unknown_ones_refused() {
        let selection = |arguments: &[&str]| config(arguments).unwrap().controllers.unwrap().selection;
        let is_on = |list| selection(&[list]).is_on("namespace-controller");
        assert!(selection(&[]).is_on("namespace-controller"));
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
