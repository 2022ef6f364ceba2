//! `Policy` of `audit.k8s.io/v1`: the file that configures the audit log.

use model::error::{FieldError, quote};
use model::json::parse_yaml;
use model::names::dns1123_subdomain;
use model::object;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Level, Stage};

const VERSION: &str = "audit.k8s.io/v1";

/// The audit policy; the first rule that matches a request decides.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    /// Settings without effect, one sentence each.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
struct Rule {
    given: RuleFields,
    extent: Extent,
}

/// The part of a request that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The audit level.
    pub level: Level,
    omitted: [bool; Stage::ALL.len()],
    /// Whether `managedFields` are removed from objects.
    pub omits_managers: bool,
}

impl Extent {
    /// Whether an event is written at this stage.
    pub fn has(&self, stage: Stage) -> bool {
        self.level != Level::None && !self.omitted[stage as usize]
    }
}

/// The attributes of a request that rules match.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The name of the user; empty before authentication.
    pub user: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
    /// The verb of authorization.
    pub verb: &'a str,
    /// The requested object or path.
    pub target: AuditTarget<'a>,
}

/// The object or path of a request.
#[derive(Clone, Copy, Debug)]
pub enum AuditTarget<'a> {
    /// Objects.
    Resource {
        /// Empty for the core group.
        group: &'a str,
        /// The plural name of the resource.
        resource: &'a str,
        /// Empty for the object itself.
        subresource: &'a str,
        /// Empty where there is none.
        namespace: &'a str,
        /// Empty for a request of a whole collection.
        name: &'a str,
    },
    /// A nonresource path.
    Path(&'a str),
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct PolicyFields {
    rules: Vec<RuleFields>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RuleFields {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

const POLICY_FIELDS: [&str; 6] =
    ["kind", "apiVersion", "metadata", "rules", "omitStages", "omitManagedFields"];
const RULE_FIELDS: [&str; 9] = [
    "level",
    "users",
    "userGroups",
    "verbs",
    "resources",
    "namespaces",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
];

impl Policy {
    /// Parses a policy file.
    ///
    /// # Errors
    /// The reason why the server refuses to start, in kube-apiserver's words.
    pub fn read(file: &[u8]) -> Result<Self, String> {
        let failed = |problem: String| format!("failed decoding: {problem}");
        let value = parse_yaml(file).map_err(|error| failed(error.to_string()))?.value;
        let document = match value {
            Value::Object(document) => document,
            Value::Null => Map::new(),
            other => {
                return Err(failed(format!(
                    "couldn't get version/kind; json parse error: {other} is no object"
                )));
            }
        };
        check_kind(&document)?;
        let warnings = unknown_fields(&document);
        let given: PolicyFields = serde_json::from_value(without_nulls(Value::Object(document)))
            .map_err(|error| failed(format!("json: {error}")))?;
        let errors: Vec<String> = validate(&given).iter().map(ToString::to_string).collect();
        match errors.as_slice() {
            [] if given.rules.is_empty() => return Err("loaded illegal policy with 0 rules".to_owned()),
            [] => {}
            [one] => return Err(one.clone()),
            several => return Err(format!("[{}]", several.join(", "))),
        }
        let rules = given.rules.into_iter().map(|rule| Rule {
            extent: Extent {
                level: Level::ALL.into_iter().find(|level| level.as_str() == rule.level).unwrap_or_default(),
                omitted: Stage::ALL.map(|stage| {
                    given.omit_stages.iter().chain(&rule.omit_stages).any(|name| name == stage.as_str())
                }),
                omits_managers: rule.omit_managed_fields.unwrap_or(given.omit_managed_fields),
            },
            given: rule,
        });
        Ok(Self { rules: rules.collect(), warnings })
    }

    /// The level and stages for a request: none if no rule matches.
    pub fn extent(&self, request: &Attributes<'_>) -> Extent {
        let first = self.rules.iter().find(|rule| rule.given.fits(request));
        first.map_or_else(Extent::default, |rule| rule.extent)
    }
}

/// Drops fields that are null: Go leaves them at their zero value.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn check_kind(document: &Map<String, Value>) -> Result<(), String> {
    let text = |key: &str| object::text(document, &[key]);
    match (text("apiVersion"), text("kind")) {
        ("", _) => {
            Err("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy".to_owned())
        }
        (VERSION, "Policy" | "") => Ok(()),
        (VERSION, kind @ ("Event" | "EventList" | "PolicyList")) => {
            Err(format!("failed decoding: converting (v1.{kind}) to (audit.Policy): unknown conversion"))
        }
        (version, kind) => Err(format!(
            "failed decoding: no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(kind),
            quote(version)
        )),
    }
}

fn unknown_fields(document: &Map<String, Value>) -> Vec<String> {
    let of = |fields: &Map<String, Value>, known: &[&str], place: &str| -> Vec<String> {
        let unknown = fields.keys().filter(|key| !known.contains(&key.as_str()));
        unknown.map(|key| format!("unknown field {}", quote(&format!("{place}{key}")))).collect()
    };
    let mut unknown = of(document, &POLICY_FIELDS, "");
    let rules = document.get("rules").and_then(Value::as_array).into_iter().flatten();
    for (index, rule) in rules.enumerate().filter_map(|(index, rule)| Some((index, rule.as_object()?))) {
        unknown.extend(of(rule, &RULE_FIELDS, &format!("rules[{index}].")));
    }
    if unknown.is_empty() {
        return unknown;
    }
    let unknown = unknown.join(", ");
    vec![format!(
        "Audit policy contains errors, falling back to lenient decoding: strict decoding error: {unknown}"
    )]
}

fn validate(policy: &PolicyFields) -> Vec<FieldError> {
    let mut errors = stages(&policy.omit_stages, "omitStages");
    for (index, rule) in policy.rules.iter().enumerate() {
        errors.extend(rule.validate(&format!("rules[{index}]")));
    }
    errors
}

fn stages(names: &[String], path: &str) -> Vec<FieldError> {
    let known = Stage::ALL.map(Stage::as_str);
    let unknown = names.iter().enumerate().filter(|(_, name)| !known.contains(&name.as_str()));
    let detail = format!("allowed stages are {}", known.join(","));
    unknown
        .map(|(index, name)| FieldError::invalid(format!("{path}[{index}]"), name.as_str(), detail.as_str()))
        .collect()
}

impl RuleFields {
    fn validate(&self, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let levels = Level::ALL.map(Level::as_str);
        if self.level.is_empty() {
            errors.push(FieldError::required(format!("{path}.level"), ""));
        } else if !levels.contains(&self.level.as_str()) {
            errors.push(FieldError::not_supported(format!("{path}.level"), self.level.as_str(), &levels));
        }
        let paths = format!("{path}.nonResourceURLs");
        for (index, url) in self.paths.iter().enumerate().filter(|(_, url)| *url != "*") {
            let mut wrong = |detail: &str| {
                errors.push(FieldError::invalid(format!("{paths}[{index}]"), url.as_str(), detail));
            };
            if !url.starts_with('/') {
                wrong("non-resource URL rules must begin with a '/' character");
            }
            if url.find('*').is_some_and(|at| at + 1 < url.len()) {
                wrong("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
        for of in &self.resources {
            errors.extend(of.validate(&format!("{path}.resources")));
        }
        errors.extend(stages(&self.omit_stages, &format!("{path}.omitStages")));
        let is_about_objects = !self.resources.is_empty() || !self.namespaces.is_empty();
        if !self.paths.is_empty() && is_about_objects {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(paths, self.paths.clone(), detail));
        }
        errors
    }

    fn fits(&self, request: &Attributes<'_>) -> bool {
        let has = |list: &[String], value: &str| list.is_empty() || list.iter().any(|known| known == value);
        let is_in_group = self.user_groups.is_empty()
            || request.groups.iter().any(|group| self.user_groups.contains(group));
        if !has(&self.users, request.user) || !is_in_group || !has(&self.verbs, request.verb) {
            return false;
        }
        let is_about_objects = !self.namespaces.is_empty() || !self.resources.is_empty();
        match request.target {
            AuditTarget::Resource { namespace, .. } if is_about_objects => {
                let of = &self.resources;
                has(&self.namespaces, namespace)
                    && (of.is_empty() || of.iter().any(|of| of.has(&request.target)))
            }
            AuditTarget::Path(path) if !is_about_objects => {
                self.paths.is_empty() || self.paths.iter().any(|spec| is_below(path, spec))
            }
            AuditTarget::Resource { .. } => self.paths.is_empty(),
            AuditTarget::Path(_) => false,
        }
    }
}

fn is_below(path: &str, spec: &str) -> bool {
    spec == path || spec.strip_suffix('*').is_some_and(|begin| path.starts_with(begin.trim_end_matches('*')))
}

impl GroupResources {
    fn validate(&self, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let wrong = dns1123_subdomain(&self.group);
        if !self.group.is_empty() && !wrong.is_empty() {
            let (path, group) = (format!("{path}.group"), self.group.as_str());
            errors.push(FieldError::invalid(path, group, wrong.join(",")));
        }
        if !self.resource_names.is_empty() && self.resources.is_empty() {
            let detail = "using resourceNames requires at least one resource";
            let (path, names) = (format!("{path}.resourceNames"), self.resource_names.clone());
            errors.push(FieldError::invalid(path, names, detail));
        }
        errors
    }

    fn has(&self, target: &AuditTarget<'_>) -> bool {
        let AuditTarget::Resource { group, resource, subresource, name, .. } = *target else { return false };
        if self.group != group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_named =
            self.resource_names.is_empty() || self.resource_names.iter().any(|known| known == name);
        is_named && self.resources.iter().any(|spec| names(spec, resource, subresource))
    }
}

/// Matches `pods`, `pods/log`, `pods/*`, `*/log` and `*`.
fn names(spec: &str, resource: &str, subresource: &str) -> bool {
    match spec.split_once('/') {
        _ if spec == "*" => true,
        None => spec == resource && subresource.is_empty(),
        Some((of, "*")) if of == resource => true,
        Some(("*", part)) => !subresource.is_empty() && part == subresource,
        Some((of, part)) => of == resource && part == subresource && !part.is_empty(),
    }
}
