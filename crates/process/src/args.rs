//! Command-line fragments that several roles share, each with its help text and its checks.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use thiserror::Error;

use crate::{
    listen::ListenAddress,
    logging::{LogConfig, LogFilter, LogFormat},
    telemetry::Endpoint,
};

/// The data folder of a role.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// Folder for persistent data: certificates, kubeconfig and database
    /// [default: $XDG_DATA_HOME/orlop or ~/.local/share/orlop]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// The environment gives no default for the data folder.
#[derive(Debug, Error)]
#[error("neither HOME nor XDG_DATA_HOME is set: give --data DIR, the folder for certificates and database")]
pub struct NoHome;

impl DataArgs {
    /// Whether the folder was named on the command line.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.data.is_some()
    }

    /// The given folder, or the platform's folder for user data. `environment` looks up a variable; a program
    /// passes `std::env::var_os`.
    ///
    /// # Errors
    /// When no folder was given and the environment has no default.
    pub fn folder(self, environment: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, NoHome> {
        if let Some(folder) = self.data {
            return Ok(folder);
        }
        // The XDG specification ignores relative paths in these variables.
        let absolute = |name| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = match absolute("XDG_DATA_HOME") {
            Some(base) => base,
            None if cfg!(target_os = "macos") => {
                absolute("HOME").ok_or(NoHome)?.join("Library/Application Support")
            }
            None => absolute("HOME").ok_or(NoHome)?.join(".local/share"),
        };
        Ok(base.join("orlop"))
    }
}

/// The listen address of a role.
#[derive(Args, Clone, Debug)]
pub struct ListenArgs {
    /// Address to listen on; port 0 selects a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6443")]
    pub listen: ListenAddress,
}

/// The log settings of a role.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Observation")]
pub struct LogArgs {
    /// Log level: error, warn, info, debug or trace; or levels per module as in info,store=debug
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log_level: LogFilter,

    /// Format of log lines on standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
}

impl LogArgs {
    /// The settings for [`crate::logging::install`].
    #[must_use]
    pub fn config(self) -> LogConfig {
        LogConfig { format: self.log_format, filter: self.log_level }
    }
}

/// The trace collector of a role.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Observation")]
pub struct TelemetryArgs {
    /// OpenTelemetry collector that receives traces by OTLP over HTTP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<Endpoint>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct All {
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        listen: ListenArgs,
        #[command(flatten)]
        log: LogArgs,
        #[command(flatten)]
        telemetry: TelemetryArgs,
    }

    fn parse(line: &str) -> Result<All, clap::Error> {
        All::try_parse_from(line.split_whitespace())
    }

    fn folder(line: &str, environment: &[(&str, &str)]) -> Option<PathBuf> {
        let look_up =
            |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        parse(line).unwrap().data.folder(look_up).ok()
    }

    #[test]
    fn the_data_folder_is_the_given_one_or_that_of_the_platform() {
        assert_eq!(folder("x --data d", &[("HOME", "/home/me")]), Some("d".into()));
        assert_eq!(
            folder("x", &[("HOME", "/home/me"), ("XDG_DATA_HOME", "/data")]),
            Some("/data/orlop".into())
        );
        assert_eq!(folder("x", &[("XDG_DATA_HOME", "relative")]), None);
        #[cfg(target_os = "linux")]
        assert_eq!(folder("x", &[("HOME", "/home/me")]), Some("/home/me/.local/share/orlop".into()));
    }

    #[test]
    fn wrong_values_are_refused_with_an_example() {
        for (line, hint) in [
            ("x --listen 6443", "127.0.0.1:6443"),
            ("x --log-level loud", "info,store=debug"),
            ("x --log-format xml", "json"),
            ("x --otlp-endpoint collector", "http://127.0.0.1:4318"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn defaults_are_local_and_quiet() {
        let all = parse("x").unwrap();
        assert_eq!(all.listen.listen.to_string(), "127.0.0.1:6443");
        assert_eq!(all.telemetry.otlp_endpoint, None);
        let log = all.log.config();
        assert_eq!((log.format, log.filter.to_string().as_str()), (LogFormat::Text, "info"));
    }
}
