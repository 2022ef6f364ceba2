//! The operations of resource types, in the dialects of OpenAPI v2 and v3.

use serde_json::{Map, Value, json};

use super::schemas::{Definitions, Dialect};
use crate::registry::{ResourceType, Subresource};
use crate::request::negotiate::{JSON, PROTOBUF, YAML};
use crate::request::verb::{Verb, Verbs};
use crate::verbs::nodes;

const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// A parameter of the query or the path: name, type, what it means.
type Parameter = (&'static str, &'static str, &'static str);

const DRY_RUN: Parameter = ("dryRun", "string", "`All`: check everything, change nothing.");
const FIELD_MANAGER: Parameter = ("fieldManager", "string", "Who makes the change.");
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "What becomes of unknown and doubled fields: `Ignore`, `Warn` or `Strict`.",
);
const FORCE: Parameter = ("force", "boolean", "Whether apply takes fields from other managers.");
const PRETTY: Parameter = ("pretty", "string", "Whether JSON is indented.");
const OF_WRITES: [Parameter; 3] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const OF_PATCHES: [Parameter; 4] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
const OF_DELETIONS: [Parameter; 5] = [
    DRY_RUN,
    ("gracePeriodSeconds", "integer", "How long the object has before it goes."),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Whether an object that cannot be read is deleted all the same.",
    ),
    ("orphanDependents", "boolean", "Old form of propagationPolicy."),
    ("propagationPolicy", "string", "What becomes of dependents: `Orphan`, `Background` or `Foreground`."),
];
const OF_LISTS: [Parameter; 10] = [
    ("allowWatchBookmarks", "boolean", "Whether a watch has bookmarks."),
    ("continue", "string", "The token of the page before."),
    ("fieldSelector", "string", "Restricts the list of returned objects by their fields."),
    ("labelSelector", "string", "Restricts the list of returned objects by their labels."),
    ("limit", "integer", "The most objects of a page."),
    ("resourceVersion", "string", "Which state is read."),
    ("resourceVersionMatch", "string", "How resourceVersion is meant: `Exact` or `NotOlderThan`."),
    ("sendInitialEvents", "boolean", "Whether a watch begins with what is there."),
    ("timeoutSeconds", "integer", "How long the answer may take."),
    ("watch", "boolean", "Watch for changes to the described resources, without an end."),
];

/// What the body of a request is.
enum Content {
    None,
    /// An object of the type with this reference.
    Object(String),
    /// A patch in one of the forms.
    Patch(String),
    /// Options of a deletion, which may be left out.
    Options(String),
}

struct Operation<'a> {
    method: &'static str,
    action: &'static str,
    /// What the name of the operation begins with.
    prefix: &'static str,
    parameters: &'a [Parameter],
    content: Content,
    codes: &'static [(&'static str, &'static str)],
    answer: String,
    streams: bool,
}

/// What operations are about.
#[derive(Clone, Copy)]
struct Subject<'a> {
    of: &'a ResourceType,
    /// What the names of the operations end with.
    suffix: &'a str,
    /// Group, version and kind of what goes to and fro.
    kind: [&'a str; 3],
}

/// How the names of operations over all namespaces end.
const EVERYWHERE: &str = "ForAllNamespaces";

const OK: (&str, &str) = ("200", "OK");
const CREATED: (&str, &str) = ("201", "Created");
const ACCEPTED: (&str, &str) = ("202", "Accepted");

/// Writes the paths of types, and says which definitions they need.
pub struct Paths<'d, 's> {
    dialect: Dialect,
    definitions: &'d mut Definitions<'s>,
    paths: Map<String, Value>,
}

impl<'d, 's> Paths<'d, 's> {
    pub fn new(dialect: Dialect, definitions: &'d mut Definitions<'s>) -> Self {
        Self { dialect, definitions, paths: Map::new() }
    }

    pub fn finish(self) -> Map<String, Value> {
        self.paths
    }

    /// All paths of a type.
    pub fn add(&mut self, of: &ResourceType) {
        let (object, list) = match (&of.custom, of.strategy.schema()) {
            (Some(view), _) => self.definitions.of_custom(of, view),
            (None, Some((_, id))) => (self.definitions.of_type(id), self.definitions.of_list(id, &of.plural)),
            (None, None) => return,
        };
        let base = of.base_path();
        let scoped = if of.namespaced { format!("{base}/namespaces/{{namespace}}") } else { base.clone() };
        let collection = self.on_collection(of.verbs, &object, &list);
        let subject = Subject { of, suffix: "", kind: [&of.group, &of.version, &of.kind] };
        self.write(&subject, &format!("{scoped}/{}", of.plural), collection);
        if of.namespaced {
            let everywhere =
                self.on_collection(of.verbs.intersection(Verbs::of(&[Verb::List])), &object, &list);
            let subject = Subject { suffix: EVERYWHERE, ..subject };
            self.write(&subject, &format!("{base}/{}", of.plural), everywhere);
        }
        let one = self.on_object(of.verbs.without(Verb::Create), &object);
        self.write(&subject, &format!("{scoped}/{}/{{name}}", of.plural), one);
        let is_shown = |sub: &&Subresource| !nodes::lead_to(&of.group, &sub.name);
        for sub in of.subresources.iter().filter(is_shown) {
            let of_kind = |(group, version, kind): &(String, String, String)| {
                self.definitions.of_kind(group, version, kind)
            };
            let shown = sub.kind.as_ref().and_then(of_kind).unwrap_or_else(|| object.clone());
            let operations = self.on_object(sub.verbs, &shown);
            let kind = sub.kind.as_ref().map_or(subject.kind, |(group, version, kind)| {
                // What says no version is of that of the resource.
                [group, if version.is_empty() { &of.version } else { version }, kind]
            });
            let subject = Subject { of, suffix: &capitalized(&sub.name), kind };
            self.write(&subject, &format!("{scoped}/{}/{{name}}/{}", of.plural, sub.name), operations);
        }
    }

    fn on_collection(&mut self, verbs: Verbs, object: &str, list: &str) -> Vec<Operation<'static>> {
        let mut operations = Vec::new();
        if verbs.contains(Verb::List) {
            operations.push(Operation { streams: true, ..reading("list", "list", &OF_LISTS, list) });
        }
        if verbs.contains(Verb::Create) {
            operations.push(self.create(object));
        }
        if verbs.contains(Verb::DeleteCollection) {
            operations.push(self.deletion("deletecollection", "deleteCollection", &[OK]));
        }
        operations
    }

    fn on_object(&mut self, verbs: Verbs, object: &str) -> Vec<Operation<'static>> {
        let mut operations = Vec::new();
        if verbs.contains(Verb::Get) {
            operations.push(reading("get", "read", &[], object));
        }
        if verbs.contains(Verb::Create) {
            operations.push(self.create(object));
        }
        if verbs.contains(Verb::Update) {
            operations.push(Operation {
                method: "put",
                action: "put",
                prefix: "replace",
                parameters: &OF_WRITES,
                content: Content::Object(object.to_owned()),
                codes: &[OK, CREATED],
                answer: object.to_owned(),
                streams: false,
            });
        }
        if verbs.contains(Verb::Delete) {
            operations.push(self.deletion("delete", "delete", &[OK, ACCEPTED]));
        }
        if verbs.contains(Verb::Patch) {
            operations.push(Operation {
                method: "patch",
                action: "patch",
                prefix: "patch",
                parameters: &OF_PATCHES,
                content: Content::Patch(self.definitions.of_meta("Patch")),
                codes: &[OK, CREATED],
                answer: object.to_owned(),
                streams: false,
            });
        }
        operations
    }

    fn create(&self, object: &str) -> Operation<'static> {
        Operation {
            method: "post",
            action: "post",
            prefix: "create",
            parameters: &OF_WRITES,
            content: Content::Object(object.to_owned()),
            codes: &[OK, CREATED, ACCEPTED],
            answer: object.to_owned(),
            streams: false,
        }
    }

    fn deletion(
        &mut self,
        action: &'static str,
        prefix: &'static str,
        codes: &'static [(&'static str, &'static str)],
    ) -> Operation<'static> {
        Operation {
            method: "delete",
            action,
            prefix,
            parameters: &OF_DELETIONS,
            content: Content::Options(self.definitions.of_meta("DeleteOptions")),
            codes,
            answer: self.definitions.of_meta("Status"),
            streams: false,
        }
    }

    fn write(&mut self, subject: &Subject, path: &str, operations: Vec<Operation>) {
        if operations.is_empty() {
            return;
        }
        let mut item = Map::new();
        for operation in operations {
            let value = match self.dialect {
                Dialect::V2 => operation_v2(subject, &operation),
                Dialect::V3 => operation_v3(subject, &operation),
            };
            item.insert(operation.method.to_owned(), value);
        }
        let in_path =
            [("{name}", "name", "The name of the object."), ("{namespace}", "namespace", "Its namespace.")];
        let mut parameters: Vec<Value> = in_path
            .into_iter()
            .filter(|(mark, ..)| path.contains(mark))
            .map(|(_, name, text)| self.parameter(&(name, "string", text), true))
            .collect();
        parameters.push(self.parameter(&PRETTY, false));
        item.insert("parameters".to_owned(), parameters.into());
        self.paths.insert(path.to_owned(), item.into());
    }

    fn parameter(&self, parameter: &Parameter, in_path: bool) -> Value {
        written(self.dialect, parameter, in_path)
    }
}

fn reading(
    action: &'static str,
    prefix: &'static str,
    parameters: &'static [Parameter],
    answer: &str,
) -> Operation<'static> {
    Operation {
        method: "get",
        action,
        prefix,
        parameters,
        content: Content::None,
        codes: &[OK],
        answer: answer.to_owned(),
        streams: false,
    }
}

fn written(dialect: Dialect, (name, kind, text): &Parameter, in_path: bool) -> Value {
    let place = if in_path { "path" } else { "query" };
    let mut parameter = json!({"name": name, "in": place, "description": text});
    if in_path {
        parameter["required"] = true.into();
    }
    match dialect {
        Dialect::V2 => {
            parameter["type"] = (*kind).into();
            parameter["uniqueItems"] = true.into();
        }
        Dialect::V3 => parameter["schema"] = json!({"type": kind, "uniqueItems": true}),
    }
    parameter
}

/// What both dialects have.
fn common(subject: &Subject, operation: &Operation) -> Value {
    let Subject { of, suffix, kind: [of_group, of_version, of_kind] } = subject;
    let scope = if of.namespaced && *suffix != EVERYWHERE { "Namespaced" } else { "" };
    let group = camel_group(&of.group);
    let version = capitalized(&of.version);
    json!({
        "tags": [format!("{}_{}", group_tag(&of.group), of.version)],
        "description": format!("{} {}", operation.action, of.kind),
        "operationId": format!("{}{group}{version}{scope}{}{suffix}", operation.prefix, of.kind),
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": of_group, "version": of_version, "kind": of_kind},
    })
}

fn operation_v2(subject: &Subject, operation: &Operation) -> Value {
    let of = subject.of;
    let mut value = common(subject, operation);
    let mut parameters: Vec<Value> =
        operation.parameters.iter().map(|parameter| written(Dialect::V2, parameter, false)).collect();
    let mut consumes = json!(["*/*"]);
    let (reference, required) = match &operation.content {
        Content::None => (None, false),
        Content::Object(reference) => (Some(reference), true),
        Content::Patch(reference) => {
            consumes = json!(patches(of));
            (Some(reference), true)
        }
        Content::Options(reference) => (Some(reference), false),
    };
    if let Some(reference) = reference {
        let mut body = json!({"name": "body", "in": "body", "schema": {"$ref": reference}});
        if required {
            body["required"] = true.into();
        }
        parameters.insert(0, body);
    }
    let answers = operation.codes.iter().map(|(code, text)| {
        ((*code).to_owned(), json!({"description": text, "schema": {"$ref": operation.answer}}))
    });
    let mut answers: Map<String, Value> = answers.collect();
    answers.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    value["consumes"] = consumes;
    value["produces"] = media_types(of, operation.streams).into();
    value["schemes"] = json!(["https"]);
    value["responses"] = answers.into();
    if !parameters.is_empty() {
        value["parameters"] = parameters.into();
    }
    value
}

fn operation_v3(subject: &Subject, operation: &Operation) -> Value {
    let of = subject.of;
    let mut value = common(subject, operation);
    let content = |media: &[&str], reference: &str| -> Value {
        media.iter().map(|media| ((*media).to_owned(), json!({"schema": {"$ref": reference}}))).collect()
    };
    let body = match &operation.content {
        Content::None => None,
        Content::Object(reference) => {
            Some(json!({"content": content(&["*/*"], reference), "required": true}))
        }
        Content::Patch(reference) => {
            Some(json!({"content": content(patches(of), reference), "required": true}))
        }
        Content::Options(reference) => Some(json!({"content": content(&["*/*"], reference)})),
    };
    if let Some(body) = body {
        value["requestBody"] = body;
    }
    let media = media_types(of, operation.streams);
    let answers = operation.codes.iter().map(|(code, text)| {
        ((*code).to_owned(), json!({"description": text, "content": content(&media, &operation.answer)}))
    });
    let mut answers: Map<String, Value> = answers.collect();
    answers.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    value["responses"] = answers.into();
    if !operation.parameters.is_empty() {
        let parameters = operation.parameters.iter();
        value["parameters"] = parameters.map(|parameter| written(Dialect::V3, parameter, false)).collect();
    }
    value
}

/// The forms of a patch: only built-in types say how lists are merged.
fn patches(of: &ResourceType) -> &'static [&'static str] {
    if of.custom.is_some() { &PATCHES[..3] } else { &PATCHES }
}

fn media_types(of: &ResourceType, streams: bool) -> Vec<&'static str> {
    let mut media = vec![JSON, YAML];
    if of.protobuf {
        media.push(PROTOBUF);
    }
    if streams {
        media.push("application/json;stream=watch");
        media.extend(of.protobuf.then_some("application/vnd.kubernetes.protobuf;stream=watch"));
    }
    media
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// `RbacAuthorization` of `rbac.authorization.k8s.io`.
fn camel_group(group: &str) -> String {
    if group.is_empty() {
        return "Core".to_owned();
    }
    group.trim_end_matches(".k8s.io").split(['.', '-']).map(capitalized).collect()
}

/// `rbacAuthorization` of `rbac.authorization.k8s.io`.
fn group_tag(group: &str) -> String {
    let camel = camel_group(group);
    let mut characters = camel.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
