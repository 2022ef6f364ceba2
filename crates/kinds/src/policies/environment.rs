//! The CEL environment of policies: variables and their types.

use std::sync::{Arc, LazyLock};

use cel::library::{authorizer, kubernetes};
use cel::{Declared, Env, Field, ListKind, ObjectType, Type};

use crate::structural::rules::ENVIRONMENT;

/// The variable of the new object.
pub const OBJECT: &str = "object";
/// The variable of the old object.
pub const OLD_OBJECT: &str = "oldObject";
/// The variable of the request.
pub const REQUEST: &str = "request";
/// The variable of the parameters.
pub const PARAMS: &str = "params";
/// The variable of the namespace.
pub const NAMESPACE: &str = "namespaceObject";
/// The variable of authorization checks.
pub const AUTHORIZER: &str = "authorizer";
/// The variable of authorization checks for the resource of the request.
pub const RESOURCE_CHECK: &str = "authorizer.requestResource";
/// The variable that contains the variables of a policy.
pub const VARIABLES: &str = "variables";

/// The environment of expressions that mutate objects.
static PATCHING: LazyLock<Env> =
    LazyLock::new(|| Env::new(kubernetes::libraries().into_iter().chain([kubernetes::patch_library()])));

static REQUEST_TYPE: LazyLock<Type> = LazyLock::new(request_type);
static NAMESPACE_TYPE: LazyLock<Type> = LazyLock::new(namespace_type);

/// The types of the objects in an environment.
pub(super) struct Objects {
    pub object: Type,
    pub params: Option<Type>,
}

/// The environment of an expression.
pub(super) fn environment(objects: &Objects, has_authorizer: bool, is_patching: bool) -> Env {
    let base = if is_patching { &PATCHING } else { &ENVIRONMENT };
    let mut env = Env::clone(base)
        .variable(OBJECT, objects.object.clone())
        .variable(OLD_OBJECT, objects.object.clone())
        .variable(NAMESPACE, NAMESPACE_TYPE.clone())
        .variable(REQUEST, REQUEST_TYPE.clone());
    if let Some(params) = &objects.params {
        env = env.variable(PARAMS, params.clone());
    }
    if has_authorizer {
        env = env.variable(AUTHORIZER, authorizer::authorizer_type());
    }
    env
}

type Fields = Vec<(Arc<str>, Field)>;

fn field(name: &str, declared: Declared) -> (Arc<str>, Field) {
    (name.into(), Field { json_name: name.into(), declared: Arc::new(declared) })
}

fn object(name: &str, fields: Fields) -> Declared {
    Declared::object(ObjectType { name: name.into(), fields: fields.into_iter().collect() }, 0)
}

fn text(name: &str) -> (Arc<str>, Field) {
    field(name, Declared::scalar(Type::String))
}

fn texts() -> Declared {
    Declared::list(Arc::new(Declared::scalar(Type::String)), 0, ListKind::Atomic)
}

fn map_of(item: Declared) -> Declared {
    Declared::map(Arc::new(Declared::scalar(Type::String)), Arc::new(item), 0)
}

fn request_type() -> Type {
    let kind = || object("kubernetes.GroupVersionKind", ["group", "version", "kind"].map(text).into());
    let resource =
        || object("kubernetes.GroupVersionResource", ["group", "version", "resource"].map(text).into());
    let user = object(
        "kubernetes.UserInfo",
        vec![text("username"), text("uid"), field("groups", texts()), field("extra", map_of(texts()))],
    );
    let fields = vec![
        field("kind", kind()),
        field("resource", resource()),
        text("subResource"),
        field("requestKind", kind()),
        field("requestResource", resource()),
        text("requestSubResource"),
        text("name"),
        text("namespace"),
        text("operation"),
        field("userInfo", user),
        field("dryRun", Declared::scalar(Type::Bool)),
        field("options", Declared::scalar(Type::Dyn)),
    ];
    object("kubernetes.AdmissionRequest", fields).ty
}

fn namespace_type() -> Type {
    let time = |name: &str| field(name, Declared::scalar(Type::Timestamp));
    let number = |name: &str| field(name, Declared::scalar(Type::Int));
    let labels = |name: &str| field(name, map_of(Declared::scalar(Type::String)));
    let metadata = vec![
        text("name"),
        text("generateName"),
        text("namespace"),
        labels("labels"),
        labels("annotations"),
        text("UID"),
        time("creationTimestamp"),
        number("deletionGracePeriodSeconds"),
        time("deletionTimestamp"),
        number("generation"),
        text("resourceVersion"),
        field("finalizers", texts()),
    ];
    let condition = object(
        "kubernetes.NamespaceCondition",
        vec![text("status"), text("type"), time("lastTransitionTime"), text("message"), text("reason")],
    );
    let conditions = Declared::list(Arc::new(condition), 0, ListKind::Atomic);
    let status = object("kubernetes.NamespaceStatus", vec![field("conditions", conditions), text("phase")]);
    let spec = object("kubernetes.NamespaceSpec", vec![field("finalizers", texts())]);
    let fields = vec![
        field("metadata", object("kubernetes.NamespaceMetadata", metadata)),
        field("spec", spec),
        field("status", status),
    ];
    object("kubernetes.Namespace", fields).ty
}
