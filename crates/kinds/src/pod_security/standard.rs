//! Levels, versions, and the policy that the labels of a namespace select.

use std::fmt;

use model::Object;
use model::error::FieldError;

/// The level of a standard; each one allows less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No restrictions.
    Privileged,
    /// Prevents known privilege escalations.
    Baseline,
    /// Follows the best practices of hardening.
    Restricted,
}

/// The Kubernetes release that defines the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `v1.` followed by this number.
    Minor(u64),
    /// The newest release.
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

/// The standards of a namespace, by mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Violations are refused.
    pub enforce: Standard,
    /// Violations get an audit annotation.
    pub audit: Standard,
    /// Violations get a warning.
    pub warn: Standard,
}

impl Level {
    /// Parses a level; the error lists the valid ones.
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
    /// Parses a version; the error describes the valid ones.
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
    /// No restrictions.
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
    /// No restrictions.
    pub const PRIVILEGED: Self =
        Self { enforce: Standard::PRIVILEGED, audit: Standard::PRIVILEGED, warn: Standard::PRIVILEGED };

    /// Whether no mode has restrictions.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|standard| standard.level == Level::Privileged)
    }

    /// The policy of a namespace with these labels, and the errors of the labels. An invalid label enforces the
    /// strictest rules, but causes neither warnings nor audit annotations.
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
        // A namespace with a stricter enforce level than the default warn level warns at the enforce level.
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
    /// The level of a mode: `None` without a label, `Some(None)` if the label is invalid.
    fn level(&mut self, mode: &str) -> Option<Option<Level>> {
        self.parsed(&label(mode), Level::parse)
    }

    /// Parses the version of a mode, if it has a label.
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
