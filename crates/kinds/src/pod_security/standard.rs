//! Levels, versions, and the policy that the labels of a namespace make of them.

use std::fmt;

use model::Object;
use model::error::FieldError;

/// How much a Pod may do; each level allows less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    Privileged,
    /// Nothing that is known to lead out of a Pod.
    Baseline,
    /// What follows the practice of hardening.
    Restricted,
}

/// The release whose rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `v1.` and this number.
    Minor(u64),
    /// Whatever is newest.
    Latest,
}

/// A level as of a version. Displays as `restricted:latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: Version,
}

/// What a namespace asks of its Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What breaks this is refused.
    pub enforce: Standard,
    /// What breaks this is noted.
    pub audit: Standard,
    /// What breaks this is warned about.
    pub warn: Standard,
}

impl Level {
    /// Reads a level, or says what is wrong.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

impl Version {
    /// Reads a version, or says what is wrong.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "must be \"latest\" or \"v1.x\"";
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let digits = text.strip_prefix("v1.").ok_or(WRONG)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || (digits.len() > 1 && digits.starts_with('0')) {
            return Err(WRONG);
        }
        let minor = digits.parse::<i64>().map_err(|_| WRONG)?;
        Ok(Self::Minor(minor.unsigned_abs()))
    }
}

impl Standard {
    /// Everything is allowed.
    pub const PRIVILEGED: Self = Self { level: Level::Privileged, version: Version::Latest };
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(formatter, "v1.{minor}"),
            Self::Latest => formatter.write_str("latest"),
        }
    }
}

impl fmt::Display for Standard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.level.name(), self.version)
    }
}

impl Policy {
    /// Everything is allowed.
    pub const PRIVILEGED: Self =
        Self { enforce: Standard::PRIVILEGED, audit: Standard::PRIVILEGED, warn: Standard::PRIVILEGED };

    /// Whether nothing is refused, noted or warned about.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|standard| standard.level == Level::Privileged)
    }

    /// The policy of a namespace with these labels, and what is wrong with them. What cannot be read is refused by the
    /// strictest rules, but neither noted nor warned about.
    pub fn of_labels(labels: Option<&Object>, defaults: &Self) -> (Self, Vec<FieldError>) {
        let mut policy = *defaults;
        let mut errors = Vec::new();
        let Some(labels) = labels else { return (policy, errors) };
        let mut reader = Reader { labels, errors: &mut errors };
        let enforce = reader.level("enforce");
        if let Some(level) = enforce {
            policy.enforce.level = level.unwrap_or(Level::Restricted);
        }
        reader.version("enforce", &mut policy.enforce.version);
        if let Some(level) = reader.level("audit") {
            policy.audit.level = level.unwrap_or(Level::Privileged);
        }
        reader.version("audit", &mut policy.audit.version);
        let warn = reader.level("warn");
        if let Some(level) = warn {
            policy.warn.level = level.unwrap_or(Level::Privileged);
        }
        let has_warn_version = reader.version("warn", &mut policy.warn.version);
        // Who sets a stricter level than the one that is warned about wants to be warned.
        if warn.is_none() && matches!(enforce, Some(Some(level)) if level > policy.warn.level) {
            policy.warn.level = policy.enforce.level;
            if !has_warn_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }
}

/// The name of a label of Pod Security.
pub(super) fn label(mode: &str) -> String {
    format!("pod-security.kubernetes.io/{mode}")
}

struct Reader<'a> {
    labels: &'a Object,
    errors: &'a mut Vec<FieldError>,
}

impl Reader<'_> {
    /// The level of a mode: nothing if there is no label, and nothing in it if the label is no level.
    fn level(&mut self, mode: &str) -> Option<Option<Level>> {
        self.parsed(&label(mode), Level::parse)
    }

    /// Reads the version of a mode, if there is a label for it.
    fn version(&mut self, mode: &str, version: &mut Version) -> bool {
        let parsed = self.parsed(&label(&format!("{mode}-version")), Version::parse);
        if let Some(parsed) = parsed {
            *version = parsed.unwrap_or(Version::Latest);
        }
        parsed.is_some()
    }

    fn parsed<T>(
        &mut self,
        label: &str,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Option<Option<T>> {
        let text = self.labels.get(label)?.as_str().unwrap_or_default();
        Some(match parse(text) {
            Ok(parsed) => Some(parsed),
            Err(detail) => {
                self.errors.push(FieldError::invalid(format!("metadata.labels[{label}]"), text, detail));
                None
            }
        })
    }
}
