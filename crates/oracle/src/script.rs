//! Scripts: what a person writes.

use std::collections::BTreeMap;

use model::json::parse_yaml;
use serde::Deserialize;
use serde_json::Value;

/// A file of requests that are made one after the other, in a namespace of their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it is about, in a sentence.
    pub about: String,
    /// An API that the server serves only where somebody asks for it, such as `admissionregistration.k8s.io/v1beta1`.
    pub serves: Option<String>,
    /// Admission plugins that are on beside the usual ones, with commas between them.
    pub plugins: Option<String>,
    /// The audit policy of the server, where the script is about the audit log: see [`crate::Events`].
    pub audit: Option<Value>,
    /// It is about what controllers do, and so is played where they run: see [`crate::Replay`].
    #[serde(default)]
    pub controllers: bool,
    /// Texts that requests may use as `$name`.
    #[serde(default, rename = "let")]
    pub variables: BTreeMap<String, String>,
    /// Bodies that cases may refer to.
    #[serde(default)]
    pub bodies: BTreeMap<String, Value>,
    /// What webhooks answer, by their names: see [`crate::Hooks`].
    #[serde(default)]
    pub hooks: BTreeMap<String, Value>,
    /// The requests.
    pub cases: Vec<Case>,
}

/// What a script asks of the server that it is played against.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// An API that is not served by default.
    pub serves: Option<String>,
    /// Admission plugins that are on beside the usual ones.
    pub plugins: Option<String>,
    /// The text of the audit policy.
    pub audit: Option<String>,
    /// Controllers run.
    pub controllers: bool,
}

/// One request, or a row of alike ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows; the name of its answer.
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
    /// The media type that is accepted, or a short name of it.
    pub accept: Option<String>,
    /// The media type of the body, or a short name of it.
    #[serde(rename = "type")]
    pub media_type: Option<String>,
    /// The user that the administrator acts as.
    #[serde(rename = "as")]
    pub user: Option<String>,
    /// The groups of that user.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Other headers. An `authorization` stands in the place of the administrator's; without a value there is none.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body as a value, which is sent in the form that `type` says.
    pub body: Option<Value>,
    /// The body as it goes over the wire.
    pub text: Option<String>,
    /// The body is that of this name, or what the server answered to this case.
    pub like: Option<String>,
    /// Changes of the body: a JSON pointer and what shall stand there; `$unset` for nothing.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Several cases, each with other changes.
    #[serde(default)]
    pub each: BTreeMap<String, BTreeMap<String, Value>>,
    /// The answer is a stream of which so many events are read.
    pub events: Option<usize>,
    /// The request is made again until the answer has these values: a JSON pointer, such as `/body/kind` or `/code`, and
    /// what stands there; `$unset` for nothing, `$set` for anything.
    #[serde(default)]
    pub until: BTreeMap<String, Value>,
    /// Places of the answer that are not compared, such as `/body/status`: what stands there depends on the moment.
    #[serde(default)]
    pub forget: Vec<String>,
    /// Variables that are read from the answer: a name, and the JSON pointer of its value.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
}

/// The value of a change that takes something away, and what waits for nothing to be there.
pub(crate) const UNSET: &str = "$unset";
/// What waits for anything to be there.
pub(crate) const SET: &str = "$set";

impl Script {
    /// Reads a script; rows of cases become cases.
    ///
    /// # Errors
    /// What is wrong with it, in words for its author.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = parse_yaml(text.as_bytes()).map_err(|error| error.to_string())?;
        if let [first, ..] = parsed.duplicates.as_slice() {
            return Err(format!("this comes twice: {first}"));
        }
        let mut script: Self = serde_json::from_value(parsed.value).map_err(|error| error.to_string())?;
        script.cases = script.cases.into_iter().flat_map(Case::expand).collect();
        let mut known = std::collections::BTreeSet::new();
        for case in &script.cases {
            if !known.insert(&case.case) {
                return Err(format!("two cases are called {:?}", case.case));
            }
            case.target().map_err(|problem| format!("{}: {problem}", case.case))?;
        }
        Ok(script)
    }

    /// What it asks of its server.
    pub fn setting(&self) -> Setting {
        Setting {
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

    /// Method and path.
    ///
    /// # Errors
    /// There is not exactly one.
    pub fn target(&self) -> Result<(&'static str, &str), String> {
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
