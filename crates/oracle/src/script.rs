//! The form of scripts.

use std::collections::BTreeMap;

use model::json::parse_yaml;
use serde::Deserialize;
use serde_json::Value;

/// A file of requests that run one after the other in a namespace of their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// A sentence about its subject.
    pub about: String,
    /// An API that is not served by default, such as `admissionregistration.k8s.io/v1beta1`.
    pub serves: Option<String>,
    /// Additional admission plugins, separated by commas.
    pub plugins: Option<String>,
    /// The audit policy of the server, for scripts about the audit log: see [`crate::AuditEvents`].
    pub audit: Option<Value>,
    /// Whether the script needs running controllers: see [`crate::Replay`].
    #[serde(default)]
    pub controllers: bool,
    /// Texts that requests refer to as `$name`.
    #[serde(default, rename = "let")]
    pub variables: BTreeMap<String, String>,
    /// Bodies that cases refer to.
    #[serde(default)]
    pub bodies: BTreeMap<String, Value>,
    /// The answers of webhooks, by name: see [`crate::Hooks`].
    #[serde(default)]
    pub hooks: BTreeMap<String, Value>,
    /// The requests.
    pub cases: Vec<Case>,
}

/// The server settings that a script needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerSettings {
    /// An API that is not served by default.
    pub serves: Option<String>,
    /// Additional admission plugins, separated by commas.
    pub plugins: Option<String>,
    /// The text of the audit policy.
    pub audit: Option<String>,
    /// Whether controllers run.
    pub controllers: bool,
}

/// One request, or a series of similar ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name of the case and of its answer.
    pub case: String,
    #[serde(rename = "GET")]
    get: Option<String>,
    #[serde(rename = "HEAD")]
    head: Option<String>,
    #[serde(rename = "POST")]
    post: Option<String>,
    #[serde(rename = "PUT")]
    put: Option<String>,
    #[serde(rename = "PATCH")]
    patch: Option<String>,
    #[serde(rename = "DELETE")]
    delete: Option<String>,
    /// The accepted media type, or its short name.
    pub accept: Option<String>,
    /// The media type of the body, or its short name.
    #[serde(rename = "type")]
    pub media_type: Option<String>,
    /// The user to impersonate.
    #[serde(rename = "as")]
    pub user: Option<String>,
    /// The groups to impersonate.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Other headers. `authorization` replaces the administrator's credentials; an empty value sends none.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body as a value, encoded as `type` says.
    pub body: Option<Value>,
    /// The literal body.
    pub text: Option<String>,
    /// The name of a body, or of an earlier case whose answer is the body.
    pub like: Option<String>,
    /// Changes of the body: a JSON pointer and the new value; `$unset` removes the field.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Several cases, each with further changes.
    #[serde(default)]
    pub each: BTreeMap<String, BTreeMap<String, Value>>,
    /// The number of events to read from the answer, which is a watch.
    pub events: Option<usize>,
    /// Repeats the request until the answer has these values: a JSON pointer, such as `/body/kind` or
    /// `/code`, and the value; `$unset` for an absent field, `$set` for any value.
    #[serde(default)]
    pub until: BTreeMap<String, Value>,
    /// JSON pointers to values that are not compared, such as `/body/status`, because they depend on timing.
    #[serde(default)]
    pub forget: Vec<String>,
    /// Variables to read from the answer: a name, and the JSON pointer of its value.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
}

/// Removes a field in `set`; awaits an absent field in `until`.
pub(crate) const UNSET: &str = "$unset";
/// Awaits any value in `until`.
pub(crate) const SET: &str = "$set";

impl Script {
    /// Parses a script and expands series of cases.
    ///
    /// # Errors
    /// The problem, worded for the author of the script.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = parse_yaml(text.as_bytes()).map_err(|error| error.to_string())?;
        if let [first, ..] = parsed.duplicates.as_slice() {
            return Err(format!("duplicate key: {first}"));
        }
        let mut script: Self = serde_json::from_value(parsed.value).map_err(|error| error.to_string())?;
        script.cases = script.cases.into_iter().flat_map(Case::expand).collect();
        let mut known = std::collections::BTreeSet::new();
        for case in &script.cases {
            if !known.insert(&case.case) {
                return Err(format!("duplicate case {:?}", case.case));
            }
            case.request_line().map_err(|problem| format!("{}: {problem}", case.case))?;
        }
        Ok(script)
    }

    /// The server settings that the script needs.
    pub fn setting(&self) -> ServerSettings {
        ServerSettings {
            serves: self.serves.clone(),
            plugins: self.plugins.clone(),
            audit: self.audit.as_ref().map(Value::to_string),
            controllers: self.controllers,
        }
    }
}

impl Case {
    fn expand(self) -> Vec<Self> {
        if self.each.is_empty() {
            return vec![self];
        }
        let row = |(name, changes): (&String, &BTreeMap<String, Value>)| {
            let mut case = self.clone();
            case.each.clear();
            case.case = format!("{}: {name}", self.case);
            case.set.extend(changes.clone());
            case
        };
        self.each.iter().map(row).collect()
    }

    /// The method and path of the request.
    ///
    /// # Errors
    /// When there is not exactly one.
    pub fn request_line(&self) -> Result<(&'static str, &str), String> {
        let all = [
            ("GET", &self.get),
            ("HEAD", &self.head),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
        ];
        let given: Vec<_> =
            all.into_iter().filter_map(|(method, path)| Some((method, path.as_deref()?))).collect();
        match given.as_slice() {
            [one] => Ok(*one),
            _ => Err("a case has exactly one of GET, HEAD, POST, PUT, PATCH and DELETE".to_owned()),
        }
    }
}
