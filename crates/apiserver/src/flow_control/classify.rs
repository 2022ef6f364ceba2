//! Which FlowSchema a request belongs to: for the headers of its response, and for the gate, which knows a few priority levels.
//!
//! Nobody waits in a queue here: a client is told, as by Kubernetes, what its requests are taken for. The schemas are compiled when
//! they are written; a request costs a look at their rules.

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

/// The flow schemas and priority levels as they are now.
pub(crate) struct FlowSchemas {
    schemas: Arc<InformerCache<CompiledFlowSchema>>,
    levels: Arc<InformerCache<HeaderValue>>,
    ordered: RwLock<Arc<Ordered>>,
}

/// What a request is taken for: the uids of a schema and of its level.
pub(crate) struct Flow {
    schema: HeaderValue,
    level: HeaderValue,
    /// The level, as far as the gate knows levels.
    pub priority: PriorityLevel,
}

impl Flow {
    /// Says so in the head of an answer.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        headers.insert(&SCHEMA, self.schema.clone());
        headers.insert(&LEVEL, self.level.clone());
    }
}

/// Schemas whose level is there in the order in which they are tried, as of some copies.
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

    /// What has to be followed in the log.
    pub fn informers(&self) -> [Arc<dyn PluginInformer>; 2] {
        [self.schemas.clone(), self.levels.clone()]
    }

    /// Ring when FlowSchemas or PriorityLevelConfigurations have changed.
    pub fn changes(&self) -> [watch::Receiver<Reached>; 2] {
        self.informers().map(|of| of.position().changes())
    }

    /// What a request is taken for, if there are schemas.
    pub fn of(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Option<Flow> {
        let ordered = self.ordered()?;
        let mut all = ordered.all.iter();
        let (schema, level) = all.find(|(schema, _)| schema.has(caller, attributes))?;
        let priority = PriorityLevel::named(&schema.level);
        Some(Flow { schema: schema.uid.clone(), level: level.clone(), priority })
    }

    /// Put in order again only when one of them has changed.
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
        // Those of one precedence stay in the order of their names.
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
