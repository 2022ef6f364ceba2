//! Structured logs on standard error: text or JSON.

use std::{
    fmt,
    io::{self, IsTerminal},
    str::FromStr,
};

use clap::ValueEnum;
use thiserror::Error;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterFn, LevelFilter, Targets},
    fmt::MakeWriter,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::telemetry::Traces;

/// The format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for a person, with colours on a terminal
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// The log filter: a level, or levels per module such as `info,store=debug`.
#[derive(Clone, Debug)]
pub struct LogFilter(Targets);

/// A text that is no log filter.
#[derive(Debug, Error)]
#[error(
    "invalid log filter `{0}`: give error, warn, info, debug or trace, or levels per module as in `info,store=debug`"
)]
pub struct BadFilter(String);

impl FromStr for LogFilter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Self, BadFilter> {
        // `Targets` parses a single unknown word as a module name, which would hide misspelt levels.
        let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
        let names_levels = text.split(',').all(|part| part.contains('=') || is_level(part));
        match text.parse::<Targets>() {
            Ok(targets) if names_levels => Ok(Self(targets)),
            _ => Err(BadFilter(text.to_owned())),
        }
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Log settings.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The format of a line.
    pub format: LogFormat,
    /// The events that are logged.
    pub filter: LogFilter,
}

/// The process already has a subscriber.
#[derive(Debug, Error)]
#[error("logging was set up twice; this is a defect of the program")]
pub struct AlreadyInstalled;

/// Sends log events to standard error, and spans to the collector if there is one.
///
/// The subscriber is global state of the process, so only a program's `main` may install it.
///
/// # Errors
/// When the process already has a subscriber.
pub fn install(config: &LogConfig, traces: Option<&Traces>) -> Result<(), AlreadyInstalled> {
    let colours = io::stderr().is_terminal();
    subscriber(config, traces, io::stderr, colours).try_init().map_err(|_| AlreadyInstalled)
}

fn subscriber<W>(config: &LogConfig, traces: Option<&Traces>, writer: W, colours: bool) -> impl Subscriber
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    // The log filter does not apply to traces: a quiet log must not remove spans from them.
    let traced = FilterFn::new(is_traced).with_max_level_hint(LevelFilter::DEBUG);
    let spans = traces.map(|traces| traces.layer().with_filter(traced));
    Registry::default().with(lines.with_filter(config.filter.0.clone())).with(spans)
}

/// A span with the field `otel.kind` is exported even if the log filter would hide it.
fn is_traced(metadata: &Metadata<'_>) -> bool {
    let is_for_collectors = metadata.is_span() && metadata.fields().field("otel.kind").is_some();
    *metadata.level() <= Level::INFO || (is_for_collectors && *metadata.level() <= Level::DEBUG)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// The log lines for one info and one debug event with this filter and format.
    fn check(filter: &str, format: LogFormat) -> Vec<String> {
        let written = Arc::new(Mutex::new(Vec::new()));
        let config = LogConfig { format, filter: filter.parse().unwrap() };
        let sink = Arc::clone(&written);
        let subscriber = subscriber(&config, None, move || Sink(Arc::clone(&sink)), false);
        tracing::subscriber::with_default(subscriber, || {
            let _operation = tracing::info_span!("operation", verb = "list").entered();
            tracing::info!(count = 3, "listed");
            tracing::debug!("details");
        });
        let written = written.lock().unwrap();
        String::from_utf8_lossy(&written).lines().map(str::to_owned).collect()
    }

    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn text_lines_carry_message_fields_and_span() {
        let lines = check("info", LogFormat::Text);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("listed count=3"), "{lines:?}");
        assert!(lines[0].contains("operation{verb=\"list\"}"), "{lines:?}");
    }

    #[test]
    fn json_lines_are_objects_with_the_fields_at_the_top() {
        let lines = check("info", LogFormat::Json);
        assert!(lines[0].starts_with('{') && lines[0].ends_with('}'), "{lines:?}");
        for part in ["\"level\":\"INFO\"", "\"message\":\"listed\"", "\"count\":3", "\"verb\":\"list\""] {
            assert!(lines[0].contains(part), "{part} in {lines:?}");
        }
    }

    #[test]
    fn the_filter_decides_by_level_and_by_module() {
        assert_eq!(check("warn", LogFormat::Text).len(), 0);
        assert_eq!(check("debug", LogFormat::Text).len(), 2);
        assert_eq!(check("error,process::logging=debug", LogFormat::Text).len(), 2);
    }

    #[test]
    fn a_quiet_log_makes_no_span_of_a_request_and_a_collector_has_it_made() {
        let config = LogConfig { format: LogFormat::Text, filter: "info".parse().unwrap() };
        let spans = |traces: Option<&Traces>| {
            tracing::subscriber::with_default(subscriber(&config, traces, io::sink, false), || {
                let request = tracing::debug_span!("request", otel.kind = "server");
                let detail = tracing::debug_span!("detail");
                (!request.is_disabled(), !detail.is_disabled())
            })
        };
        assert_eq!(spans(None), (false, false));
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let traces = Traces::to(&format!("http://{closed}").parse().unwrap(), "the-service", "1").unwrap();
        assert_eq!(spans(Some(&traces)), (true, false));
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        for text in ["verbose", "info,store=loud", "info,verbose", "", "store"] {
            assert!(text.parse::<LogFilter>().is_err(), "{text}");
        }
    }
}
