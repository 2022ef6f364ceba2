//! Command lines of Go programs: tables of flags, and parsers that behave like Go's.

use std::fmt::{self, Write};
use std::time::Duration;

use process::go_time;
use thiserror::Error;

#[cfg(test)]
mod tests;

/// One flag.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) usage: Use,
    pub(crate) help: &'static str,
}

/// A group of flags with a heading.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) flags: &'static [Flag],
}

/// The type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing, or `=true` or `=false`.
    Switch,
    Text,
    Number,
    /// A number without sign.
    Level,
    Real,
    /// `1h2m3.5s`
    Time,
    /// An IP address.
    Address,
    /// Texts separated by commas; in kube-apiserver a repeated flag adds to the list.
    List,
    /// One text; a repeated flag adds another.
    Each,
    /// KEY=VALUE separated by commas; a repeated flag adds to the list.
    Pairs,
}

/// The effect of a flag in this program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// It does what its help says.
    Honoured,
    /// It has no effect, and needs none, for this reason: logged as information.
    Needless(&'static str),
    /// It configures an unsupported feature, which the second text describes: logged as a warning, unless it has the default value,
    /// which the first text is.
    Missing(&'static str, &'static str),
    /// It configures an unsupported feature that is unsafe to ignore: the program does not start.
    Refused(&'static str),
    /// It is deprecated in Kubernetes, with this text.
    Deprecated(&'static str),
}

/// Writes a table of flags, one per line.
macro_rules! flags {
    ($visibility:vis $table:ident = $($title:literal { $($name:literal: $kind:expr, $usage:expr, $help:expr;)* })*) => {
        /// The table.
        $visibility const $table: &[Group] = &[
            $(Group {
                title: $title,
                flags: &[$(Flag { name: $name, kind: $kind, usage: $usage, help: $help }),*],
            }),*
        ];
    };
}
pub(crate) use flags;

/// The parser to imitate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// pflag, as in Kubernetes: two dashes, `-v` and `-h` with one, underscores count as dashes.
    Pflag,
    /// Go's package flag: one dash or two.
    Standard,
}

/// Parsed arguments.
#[derive(Debug)]
pub(crate) struct Given {
    values: Vec<(&'static Flag, String)>,
    /// Whether help was requested.
    pub(crate) help: bool,
    /// The value of `--version`; `true` if it has none.
    pub(crate) version: Option<String>,
    /// Arguments that are not flags. Empty ones, which scripts with unset variables pass, are ignored.
    pub(crate) rest: Vec<String>,
}

/// Invalid arguments, in the words of Go's parsers.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum BadArguments {
    #[error("unknown flag: --{0}")]
    Unknown(String),
    #[error("unknown shorthand flag: '{0}' in -{1}")]
    UnknownShorthand(char, String),
    #[error("bad flag syntax: {0}")]
    Syntax(String),
    #[error("flag provided but not defined: -{0}")]
    Undefined(String),
    #[error("flag needs an argument: {0}")]
    NoValue(String),
    #[error("invalid argument \"{value}\" for \"{flag}\" flag: {reason}")]
    Value { flag: String, value: String, reason: String },
    #[error("\"kube-apiserver\" does not take any arguments, got {}", go_list(.0))]
    Words(Vec<String>),
    #[error("invalid value \"{value}\" for flag -{flag}: parse error")]
    StandardValue { flag: String, value: String },
}

/// Texts as Go's verb `%q` writes them.
fn go_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Parses arguments by a table. Values are validated; files are not opened.
pub(crate) fn parse(
    table: &'static [Group],
    dialect: Dialect,
    arguments: impl IntoIterator<Item = String>,
) -> Result<Given, BadArguments> {
    let mut given = Given { values: Vec::new(), help: false, version: None, rest: Vec::new() };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        // Go's package flag stops here.
        if argument.is_empty() && dialect == Dialect::Standard {
            continue;
        }
        if argument == "--" {
            given.rest.extend(arguments);
            break;
        }
        let Some((name, value)) = named(&argument, dialect)? else {
            given.rest.push(argument);
            if dialect == Dialect::Standard {
                given.rest.extend(arguments);
                break;
            }
            continue;
        };
        match name.as_str() {
            "help" | "h" => given.help = true,
            "version" => given.version = Some(value.unwrap_or_else(|| "true".to_owned())),
            _ => {
                let flag = find(table, &name).ok_or_else(|| match dialect {
                    Dialect::Pflag => BadArguments::Unknown(name.clone()),
                    Dialect::Standard => BadArguments::Undefined(name.clone()),
                })?;
                let value = match value {
                    Some(value) => value,
                    None if flag.kind == Kind::Switch => "true".to_owned(),
                    None => arguments.next().ok_or_else(|| BadArguments::NoValue(shown(flag, dialect)))?,
                };
                check(flag, &value, dialect)?;
                if !accumulates(flag.kind, dialect) {
                    given.values.retain(|(known, _)| known.name != flag.name);
                }
                given.values.push((flag, value));
            }
        }
    }
    Ok(given)
}

/// Whether a repeated flag adds to its values. Otherwise the last value replaces the others, as always in Go's package flag.
fn accumulates(kind: Kind, dialect: Dialect) -> bool {
    dialect == Dialect::Pflag && matches!(kind, Kind::List | Kind::Each | Kind::Pairs)
}

fn find(table: &'static [Group], name: &str) -> Option<&'static Flag> {
    table.iter().flat_map(|group| group.flags).find(|flag| flag.name == name)
}

/// The name of a flag, and the value in the same argument; `None` if the argument is no flag.
fn named(argument: &str, dialect: Dialect) -> Result<Option<(String, Option<String>)>, BadArguments> {
    let Some(body) = argument.strip_prefix('-').filter(|body| !body.is_empty()) else { return Ok(None) };
    let long = body.strip_prefix('-');
    if dialect == Dialect::Pflag && long.is_none() {
        return shorthand(body).map(Some);
    }
    let body = long.unwrap_or(body);
    if body.starts_with(['-', '=']) {
        return Err(BadArguments::Syntax(argument.to_owned()));
    }
    let (name, value) = match body.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (body, None),
    };
    let name = if dialect == Dialect::Pflag { name.replace('_', "-") } else { name.to_owned() };
    Ok(Some((name, value)))
}

/// `-h`, `-v 2`, `-v=2`, `-v2`.
fn shorthand(body: &str) -> Result<(String, Option<String>), BadArguments> {
    let mut letters = body.chars();
    let letter = letters.next().unwrap_or_default();
    let rest = letters.as_str();
    match letter {
        'h' => Ok(("help".to_owned(), None)),
        'v' if rest.is_empty() => Ok(("v".to_owned(), None)),
        'v' => Ok(("v".to_owned(), Some(rest.strip_prefix('=').unwrap_or(rest).to_owned()))),
        _ => Err(BadArguments::UnknownShorthand(letter, body.to_owned())),
    }
}

fn shown(flag: &Flag, dialect: Dialect) -> String {
    match (dialect, flag.name) {
        (Dialect::Pflag, "v") => "-v, --v".to_owned(),
        (Dialect::Pflag, name) => format!("--{name}"),
        (Dialect::Standard, name) => format!("-{name}"),
    }
}

fn check(flag: &Flag, value: &str, dialect: Dialect) -> Result<(), BadArguments> {
    let not = |function: &str| format!("strconv.{function}: parsing {value:?}: invalid syntax");
    let reason = match flag.kind {
        Kind::Text | Kind::List | Kind::Each => None,
        Kind::Switch => switch(value).is_none().then(|| not("ParseBool")),
        Kind::Number => value.parse::<i64>().is_err().then(|| not("ParseInt")),
        Kind::Level => value.parse::<u32>().is_err().then(|| not("ParseUint")),
        Kind::Real => value.parse::<f64>().is_err().then(|| not("ParseFloat")),
        Kind::Time => go_time::parse(value).is_none().then(|| format!("time: invalid duration {value:?}")),
        Kind::Address => {
            value.parse::<std::net::IpAddr>().is_err().then(|| format!("failed to parse IP: {value:?}"))
        }
        Kind::Pairs => commas(value)
            .find(|pair| !pair.contains('='))
            .map(|pair| format!("malformed pair, expect string=string: {pair}")),
    };
    let (value, flag) = (value.to_owned(), flag);
    match (reason, dialect) {
        (None, _) => Ok(()),
        (Some(reason), Dialect::Pflag) => {
            Err(BadArguments::Value { flag: shown(flag, dialect), value, reason })
        }
        (Some(_), Dialect::Standard) => {
            Err(BadArguments::StandardValue { flag: flag.name.to_owned(), value })
        }
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn commas(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Parses a duration such as `1h2m3.5s`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    go_time::parse(text).ok_or_else(|| format!("{text:?} is no time such as 1h30m"))
}

impl Given {
    /// The last value of a flag.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.each(name).last()
    }

    /// All values of a flag, in order.
    pub(crate) fn each(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        self.values.iter().filter(move |(flag, _)| flag.name == name).map(|(_, value)| value.as_str())
    }

    /// All values of a flag, split at commas.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        self.each(name).flat_map(commas).map(str::to_owned).collect()
    }

    /// All values of a flag, split at commas and at the first `=`.
    pub(crate) fn pairs(&self, name: &str) -> Vec<(String, String)> {
        let pair = |text: &str| {
            text.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        };
        self.each(name).flat_map(commas).filter_map(pair).collect()
    }

    /// Whether a switch is on; `None` if it is not given.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(switch)
    }

    /// The number of a flag.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|value| value.parse().ok())
    }

    /// The number of a flag, with decimals.
    pub(crate) fn real(&self, name: &str) -> Option<f64> {
        self.text(name).and_then(|value| value.parse().ok())
    }

    /// The duration of a flag.
    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        self.text(name).and_then(go_time::parse)
    }

    /// The given flags, each once, with its last value.
    pub(crate) fn flags(&self) -> Vec<(&'static Flag, &str)> {
        let mut flags: Vec<(&'static Flag, &str)> = Vec::new();
        for (flag, value) in &self.values {
            match flags.iter_mut().find(|(known, _)| known.name == flag.name) {
                Some((_, last)) => *last = value,
                None => flags.push((flag, value)),
            }
        }
        flags
    }

    /// Refusals, warnings and notes about the given flags that have no effect.
    pub(crate) fn remarks(&self) -> Remarks {
        let mut remarks = Remarks::default();
        for (Flag { name, kind, usage, .. }, value) in self.flags() {
            match usage {
                Use::Honoured => {}
                Use::Needless(reason) => {
                    remarks.notes.push(format!("--{name} changes nothing here: {reason}"));
                }
                Use::Missing(nothing, _) if is_same(*kind, nothing, value) => {}
                Use::Missing(_, reason) => {
                    remarks.warnings.push(format!("--{name} has no effect here: {reason}"));
                }
                Use::Refused(reason) => remarks.refusals.push(format!("--{name} is not supported: {reason}")),
                Use::Deprecated(words) => {
                    remarks.warnings.push(format!("Flag --{name} has been deprecated, {words}"));
                }
            }
        }
        remarks
    }
}

fn is_same(kind: Kind, one: &str, other: &str) -> bool {
    match kind {
        Kind::Switch => switch(one) == switch(other),
        Kind::Time => go_time::parse(one) == go_time::parse(other),
        Kind::Real | Kind::Number => one.parse::<f64>().ok() == other.parse::<f64>().ok(),
        _ => one == other,
    }
}

/// Remarks about the given flags.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    pub(crate) refusals: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// The table as a help text: effective flags by group, then flags that are accepted without effect.
pub(crate) struct Help(pub(crate) &'static [Group]);

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_honoured = |flag: &&Flag| matches!(flag.usage, Use::Honoured);
        for Group { title, flags } in self.0 {
            if !flags.iter().any(|flag| is_honoured(&flag)) {
                continue;
            }
            writeln!(f, "\n{title} flags:\n")?;
            for flag in flags.iter().filter(is_honoured) {
                line(f, flag, "")?;
            }
        }
        writeln!(f, "\nFlags that are taken, but have no effect here (the log says so):\n")?;
        for flag in self.0.iter().flat_map(|group| group.flags) {
            match flag.usage {
                Use::Honoured | Use::Refused(_) => {}
                Use::Needless(why) | Use::Missing(_, why) | Use::Deprecated(why) => line(f, flag, why)?,
            }
        }
        writeln!(f, "\nFlags that are refused:\n")?;
        for flag in self.0.iter().flat_map(|group| group.flags) {
            if let Use::Refused(why) = flag.usage {
                line(f, flag, why)?;
            }
        }
        Ok(())
    }
}

/// The column of the explanations.
const COLUMN: usize = 56;

fn line(f: &mut fmt::Formatter<'_>, flag: &Flag, why: &str) -> fmt::Result {
    let value = match flag.kind {
        Kind::Switch => "",
        Kind::Text | Kind::Each => " TEXT",
        Kind::Number | Kind::Level | Kind::Real => " NUMBER",
        Kind::Time => " DURATION",
        Kind::Address => " IP",
        Kind::List => " A,B",
        Kind::Pairs => " KEY=VALUE,...",
    };
    let mut left = String::new();
    let dash = if flag.name.len() == 1 { format!("  -{}, ", flag.name) } else { "      ".to_owned() };
    write!(left, "{dash}--{}{value}", flag.name)?;
    let help = flag.help;
    let because = if why.is_empty() { String::new() } else { format!(": {why}") };
    writeln!(f, "{left:<COLUMN$} {help}{because}")
}
