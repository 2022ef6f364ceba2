//! The operations of resource types, in the dialects of OpenAPI v2 and v3.

use serde_json::{Map, Value, json};

use super::document::Pieces;
use super::parameters::{
    OF_COLLECTIONS, OF_DELETIONS, OF_LISTS, OF_PATCHES, OF_WRITES, PRETTY, Parameter, VERSION, written,
};
use super::schemas::{Dialect, SchemaDefinitions};
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

/// The request body of an operation.
enum Content {
    None,
    /// An object of the type with this reference.
    Object(String),
    /// A patch.
    Patch(String),
    /// DeleteOptions, which may be omitted.
    Options(String),
}

struct OpenApiOperation<'a> {
    method: &'static str,
    action: &'static str,
    /// The prefix of the operation ID.
    prefix: &'static str,
    /// The part of the operation ID before the scope.
    amount: &'static str,
    parameters: &'a [Parameter],
    content: Content,
    codes: &'static [(&'static str, &'static str)],
    answer: String,
    streams: bool,
}

/// The resource of the operations.
#[derive(Clone, Copy)]
struct OperationSubject<'a> {
    of: &'a ResourceType,
    /// The suffix of the operation IDs.
    suffix: &'a str,
    /// Group, version and kind of request and response.
    kind: [&'a str; 3],
}

/// The suffix of operation IDs across all namespaces.
const EVERYWHERE: &str = "ForAllNamespaces";

const OK: (&str, &str) = ("200", "OK");
const CREATED: (&str, &str) = ("201", "Created");
const ACCEPTED: (&str, &str) = ("202", "Accepted");

/// Builds the paths of types, and collects the schema definitions that they need.
pub struct Paths<'d, 's> {
    definitions: &'d mut SchemaDefinitions<'s>,
    paths: Pieces,
}

impl<'d, 's> Paths<'d, 's> {
    pub fn new(definitions: &'d mut SchemaDefinitions<'s>) -> Self {
        Self { definitions, paths: Pieces::new() }
    }

    pub fn finish(self) -> Pieces {
        self.paths
    }

    /// Adds all paths of a type.
    pub fn add(&mut self, of: &ResourceType) {
        let (object, list) = match (&of.custom, of.strategy.schema()) {
            (Some(view), _) => self.definitions.of_custom(of, view),
            (None, Some((_, id))) => (self.definitions.of_type(id), self.definitions.of_list(id, &of.plural)),
            (None, None) => return,
        };
        let base = of.base_path();
        let scoped = if of.namespaced { format!("{base}/namespaces/{{namespace}}") } else { base.clone() };
        let is_custom = of.custom.is_some();
        let collection = self.on_collection(of.verbs, &object, &list, is_custom);
        let subject = OperationSubject { of, suffix: "", kind: [&of.group, &of.version, &of.kind] };
        self.write(&subject, &format!("{scoped}/{}", of.plural), collection);
        if of.namespaced {
            let everywhere = self.on_collection(
                of.verbs.intersection(Verbs::of(&[Verb::List])),
                &object,
                &list,
                is_custom,
            );
            let subject = OperationSubject { suffix: EVERYWHERE, ..subject };
            self.write(&subject, &format!("{base}/{}", of.plural), everywhere);
        }
        let mut one = self.on_object(of.verbs.without(Verb::Create), &object, is_custom);
        if of.shows_deleted && !is_custom {
            let deletions = one.iter_mut().filter(|operation| operation.action == "delete");
            deletions.for_each(|deletion| deletion.answer.clone_from(&object));
        }
        self.write(&subject, &format!("{scoped}/{}/{{name}}", of.plural), one);
        let is_shown = |sub: &&Subresource| !nodes::needs_node(&of.group, &sub.name);
        for sub in of.subresources.iter().filter(is_shown) {
            let other = sub.kind.as_ref().map(|(group, version, kind)| {
                // Without a version it is that of the resource.
                [&**group, if version.is_empty() { &of.version } else { version }, kind]
            });
            let of_kind = |[group, version, kind]: [&str; 3]| self.definitions.of_kind(group, version, kind);
            let shown = other.and_then(of_kind).unwrap_or_else(|| object.clone());
            let operations = self.on_object(sub.verbs, &shown, is_custom);
            // Custom types list their own kind even for Scale.
            let kind = other.filter(|_| !is_custom).unwrap_or(subject.kind);
            let subject = OperationSubject { of, suffix: &capitalized(&sub.name), kind };
            self.write(&subject, &format!("{scoped}/{}/{{name}}/{}", of.plural, sub.name), operations);
        }
    }

    fn on_collection(
        &mut self,
        verbs: Verbs,
        object: &str,
        list: &str,
        is_custom: bool,
    ) -> Vec<OpenApiOperation<'static>> {
        let mut operations = Vec::new();
        if verbs.contains(Verb::List) {
            operations
                .push(OpenApiOperation { streams: !is_custom, ..reading("list", "list", &OF_LISTS, list) });
        }
        if verbs.contains(Verb::Create) {
            operations.push(self.create(object));
        }
        if verbs.contains(Verb::DeleteCollection) {
            let deletion =
                OpenApiOperation { amount: "Collection", ..self.deletion("deletecollection", &[OK]) };
            operations.push(if is_custom {
                // Kubernetes lists only these, though it accepts the others.
                OpenApiOperation { parameters: &OF_LISTS, content: Content::None, ..deletion }
            } else {
                OpenApiOperation { parameters: &OF_COLLECTIONS, ..deletion }
            });
        }
        operations
    }

    fn on_object(&mut self, verbs: Verbs, object: &str, is_custom: bool) -> Vec<OpenApiOperation<'static>> {
        let mut operations = Vec::new();
        if verbs.contains(Verb::Get) {
            operations.push(reading("get", "read", if is_custom { &[VERSION] } else { &[] }, object));
        }
        if verbs.contains(Verb::Create) {
            operations.push(self.create(object));
        }
        if verbs.contains(Verb::Update) {
            operations.push(OpenApiOperation {
                method: "put",
                action: "put",
                prefix: "replace",
                amount: "",
                parameters: &OF_WRITES,
                content: Content::Object(object.to_owned()),
                codes: &[OK, CREATED],
                answer: object.to_owned(),
                streams: false,
            });
        }
        if verbs.contains(Verb::Delete) {
            operations.push(self.deletion("delete", &[OK, ACCEPTED]));
        }
        if verbs.contains(Verb::Patch) {
            operations.push(OpenApiOperation {
                method: "patch",
                action: "patch",
                prefix: "patch",
                amount: "",
                parameters: &OF_PATCHES,
                content: Content::Patch(self.definitions.of_meta("Patch")),
                codes: if is_custom { &[OK] } else { &[OK, CREATED] },
                answer: object.to_owned(),
                streams: false,
            });
        }
        operations
    }

    fn create(&self, object: &str) -> OpenApiOperation<'static> {
        OpenApiOperation {
            method: "post",
            action: "post",
            prefix: "create",
            amount: "",
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
        codes: &'static [(&'static str, &'static str)],
    ) -> OpenApiOperation<'static> {
        OpenApiOperation {
            method: "delete",
            action,
            prefix: "delete",
            amount: "",
            parameters: &OF_DELETIONS,
            content: Content::Options(self.definitions.of_meta("DeleteOptions")),
            codes,
            answer: self.definitions.of_meta("Status"),
            streams: false,
        }
    }

    fn write(
        &mut self,
        subject: &OperationSubject,
        path: &str,
        mut operations: Vec<OpenApiOperation<'static>>,
    ) {
        if operations.is_empty() {
            return;
        }
        let mut item = Map::new();
        // Parameters of all operations are listed once per path.
        let common =
            if let [only] = operations.as_mut_slice() { std::mem::take(&mut only.parameters) } else { &[] };
        for operation in operations {
            let value = match self.definitions.form.dialect {
                Dialect::V2 => operation_v2(subject, &operation),
                Dialect::V3 => operation_v3(subject, &operation),
            };
            item.insert(operation.method.to_owned(), value);
        }
        let in_path =
            [("{name}", "name", "The name of the object."), ("{namespace}", "namespace", "Its namespace.")];
        let in_path = in_path.into_iter().filter(|(mark, ..)| path.contains(mark));
        let in_path = in_path.map(|(_, name, text)| (Parameter::new(name, "string", text), true));
        let common = common.iter().chain([&PRETTY]).map(|parameter| (*parameter, false));
        let mut parameters: Vec<(Parameter, bool)> = in_path.chain(common).collect();
        parameters.sort_by_key(|(parameter, _)| parameter.name);
        let parameters = parameters.iter().map(|(parameter, in_path)| self.parameter(parameter, *in_path));
        item.insert("parameters".to_owned(), parameters.collect());
        self.paths.insert(path.to_owned(), self.definitions.form.path_item(&item.into()));
    }

    fn parameter(&self, parameter: &Parameter, in_path: bool) -> Value {
        written(self.definitions.form.dialect, parameter, in_path)
    }
}

fn reading(
    action: &'static str,
    prefix: &'static str,
    parameters: &'static [Parameter],
    answer: &str,
) -> OpenApiOperation<'static> {
    OpenApiOperation {
        method: "get",
        action,
        prefix,
        amount: "",
        parameters,
        content: Content::None,
        codes: &[OK],
        answer: answer.to_owned(),
        streams: false,
    }
}

/// The members of both dialects.
fn common(subject: &OperationSubject, operation: &OpenApiOperation) -> Value {
    let OperationSubject { of, suffix, kind: [of_group, of_version, of_kind] } = subject;
    let scope = if of.namespaced && *suffix != EVERYWHERE { "Namespaced" } else { "" };
    let group = camel_group(&of.group);
    let version = capitalized(&of.version);
    json!({
        "tags": [format!("{}_{}", group_tag(&of.group), of.version)],
        "description": format!("{} {}", operation.action, of.kind),
        "operationId": format!(
            "{}{group}{version}{}{scope}{}{suffix}", operation.prefix, operation.amount, of.kind
        ),
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": of_group, "version": of_version, "kind": of_kind},
    })
}

fn operation_v2(subject: &OperationSubject, operation: &OpenApiOperation) -> Value {
    let of = subject.of;
    let mut value = common(subject, operation);
    let mut parameters: Vec<Value> =
        operation.parameters.iter().map(|parameter| written(Dialect::V2, parameter, false)).collect();
    let mut consumes = json!(bodies(of));
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

fn operation_v3(subject: &OperationSubject, operation: &OpenApiOperation) -> Value {
    let of = subject.of;
    let mut value = common(subject, operation);
    let content = |media: &[&str], reference: &str| -> Value {
        media.iter().map(|media| ((*media).to_owned(), json!({"schema": {"$ref": reference}}))).collect()
    };
    let body = match &operation.content {
        Content::None => None,
        Content::Object(reference) => {
            Some(json!({"content": content(bodies(of), reference), "required": true}))
        }
        Content::Patch(reference) => {
            Some(json!({"content": content(patches(of), reference), "required": true}))
        }
        Content::Options(reference) => Some(json!({"content": content(bodies(of), reference)})),
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

/// The media types of an object.
fn bodies(of: &ResourceType) -> &'static [&'static str] {
    if of.custom.is_some() { &[JSON, YAML] } else { &["*/*"] }
}

/// The media types of a patch: strategic merge patch exists for built-in types only.
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

/// `RbacAuthorization` for `rbac.authorization.k8s.io`.
fn camel_group(group: &str) -> String {
    if group.is_empty() {
        return "Core".to_owned();
    }
    group.trim_end_matches(".k8s.io").split(['.', '-']).map(capitalized).collect()
}

/// `rbacAuthorization` for `rbac.authorization.k8s.io`.
fn group_tag(group: &str) -> String {
    let camel = camel_group(group);
    let mut characters = camel.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
