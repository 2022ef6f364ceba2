//! The FlowSchema of a request, for response headers and for the gate, which knows a few priority levels.
//!
//! There are no queues. Schemas are compiled when they are cached; a request evaluates their rules.

use std::sync::{Arc, PoisonError, RwLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use model::{ObjectKey, Resource};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use super::GROUP;
use crate::admission::informers::{CachedObjects, InformerCache, PluginInformer};
use crate::auth::{AuthorizerAttributes, Identity};
use crate::gate::PriorityLevel;
use crate::informer::Reached;
use crate::registry::Object;

static SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
static LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
const ANY: &str = "*";

/// The current FlowSchemas and PriorityLevelConfigurations.
pub(crate) struct FlowSchemas {
    schemas: Arc<InformerCache<CompiledFlowSchema>>,
    levels: Arc<InformerCache<HeaderValue>>,
    ordered: RwLock<Arc<Ordered>>,
}

/// The classification of a request: the uids of its FlowSchema and priority level.
pub(crate) struct Flow {
    schema: HeaderValue,
    level: HeaderValue,
    /// The priority level of the gate.
    pub priority: PriorityLevel,
}

impl Flow {
    /// Adds the headers of API Priority and Fairness.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        headers.insert(&SCHEMA, self.schema.clone());
        headers.insert(&LEVEL, self.level.clone());
    }
}

/// The schemas whose priority level exists, in matching order, and the cache contents that they were computed from.
#[derive(Default)]
struct Ordered {
    schemas: CachedObjects<CompiledFlowSchema>,
    levels: CachedObjects<HeaderValue>,
    all: Vec<(Arc<CompiledFlowSchema>, HeaderValue)>,
}

struct CompiledFlowSchema {
    uid: HeaderValue,
    precedence: i64,
    level: String,
    rules: Vec<Rule>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<PathRule>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
enum Subject {
    User { user: Name },
    Group { group: Name },
    ServiceAccount { service_account: Account },
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Account {
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

impl FlowSchemas {
    pub fn new() -> Self {
        let level = |_: &ObjectKey, object: Object| uid(&object);
        Self {
            schemas: InformerCache::new(Resource::new(GROUP, "flowschemas"), |_, object| {
                CompiledFlowSchema::read(&object)
            }),
            levels: InformerCache::new(Resource::new(GROUP, "prioritylevelconfigurations"), level),
            ordered: RwLock::default(),
        }
    }

    /// The informers of both resources.
    pub fn informers(&self) -> [Arc<dyn PluginInformer>; 2] {
        [self.schemas.clone(), self.levels.clone()]
    }

    /// Signal changes of FlowSchemas and PriorityLevelConfigurations.
    pub fn changes(&self) -> [watch::Receiver<Reached>; 2] {
        self.informers().map(|of| of.position().changes())
    }

    /// Classifies a request; `None` if no schema matches.
    pub fn of(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Option<Flow> {
        let ordered = self.ordered()?;
        let mut all = ordered.all.iter();
        let (schema, level) = all.find(|(schema, _)| schema.has(caller, attributes))?;
        let priority = PriorityLevel::named(&schema.level);
        Some(Flow { schema: schema.uid.clone(), level: level.clone(), priority })
    }

    /// Recomputed only after a change.
    fn ordered(&self) -> Option<Arc<Ordered>> {
        let (schemas, levels) = (self.schemas.of("")?, self.levels.of("")?);
        let ordered = self.ordered.read().unwrap_or_else(PoisonError::into_inner).clone();
        if Arc::ptr_eq(&ordered.schemas, &schemas) && Arc::ptr_eq(&ordered.levels, &levels) {
            return Some(ordered);
        }
        let found = schemas.values().filter_map(|schema| {
            let level = levels.get(&schema.level)?;
            Some((schema.clone(), HeaderValue::clone(level)))
        });
        let mut all: Vec<(Arc<CompiledFlowSchema>, HeaderValue)> = found.collect();
        // The sort is stable: schemas of equal precedence stay ordered by name.
        all.sort_by_key(|(schema, _)| schema.precedence);
        let fresh = Arc::new(Ordered { schemas, levels, all });
        *self.ordered.write().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        Some(fresh)
    }
}

fn uid(object: &Object) -> Option<HeaderValue> {
    HeaderValue::from_str(object.get("metadata")?.get("uid")?.as_str()?).ok()
}

impl CompiledFlowSchema {
    fn read(object: &Object) -> Option<Self> {
        let spec = object.get("spec")?;
        let rules = spec.get("rules").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            uid: uid(object)?,
            precedence: spec["matchingPrecedence"].as_i64().unwrap_or(1000),
            level: spec["priorityLevelConfiguration"]["name"].as_str()?.to_owned(),
            rules: rules.filter_map(|rule| Rule::deserialize(rule).ok()).collect(),
        })
    }

    fn has(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> bool {
        let fits = |rule: &Rule| {
            let is_about = match attributes {
                AuthorizerAttributes::Resource { .. } => {
                    rule.resource_rules.iter().any(|rule| rule.has(attributes))
                }
                AuthorizerAttributes::Path { .. } => {
                    rule.non_resource_rules.iter().any(|rule| rule.has(attributes))
                }
            };
            is_about && rule.subjects.iter().any(|subject| subject.is(caller))
        };
        self.rules.iter().any(fits)
    }
}

impl Subject {
    fn is(&self, caller: &Identity) -> bool {
        match self {
            Self::User { user } => user.name == ANY || user.name == caller.name,
            Self::Group { group } => group.name == ANY || caller.is_in(&group.name),
            Self::ServiceAccount { service_account: Account { namespace, name } } => {
                let own = crate::auth::accounts::account_of(&caller.name);
                own.is_some_and(|own| own.0 == namespace && (name == ANY || own.1 == name))
            }
        }
    }
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|known| known == ANY || known == value)
}

impl ResourceRule {
    fn has(&self, attributes: AuthorizerAttributes<'_>) -> bool {
        let AuthorizerAttributes::Resource { verb, path } = attributes else { return false };
        let is_named = |known: &String| match known.split_once('/') {
            _ if known == ANY => true,
            Some((resource, subresource)) => resource == path.resource && subresource == path.subresource,
            None => *known == path.resource && path.subresource.is_empty(),
        };
        let is_in_scope = match path.namespace.as_str() {
            "" => self.cluster_scope,
            namespace => has(&self.namespaces, namespace),
        };
        is_in_scope
            && has(&self.verbs, verb)
            && has(&self.api_groups, &path.group)
            && self.resources.iter().any(is_named)
    }
}

impl PathRule {
    fn has(&self, attributes: AuthorizerAttributes<'_>) -> bool {
        let AuthorizerAttributes::Path { verb, path } = attributes else { return false };
        let is_below = |known: &String| match known.strip_suffix(ANY) {
            Some(begin) => path.starts_with(begin),
            None => known == path,
        };
        has(&self.verbs, verb) && self.paths.iter().any(is_below)
    }
}
