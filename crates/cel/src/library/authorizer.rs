//! Kubernetes' authorizer library: `authorizer.group('').resource('pods').check('get').allowed()`.

use std::{fmt, sync::Arc};

use super::cost;
use crate::{
    Error, Implementation, Library, Opaque, Overload, Result, Type, Value,
    cost::{CallEstimate, CostEstimate, LIST_CREATE, STRING_TRAVERSAL_FACTOR, STRUCT_CREATE, SizeEstimate},
};

/// Makes authorization decisions for expressions.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides a request.
    fn decide(&self, check: &Check) -> Decision;

    /// The authorizer for a service account.
    fn for_service_account(&self, namespace: &str, name: &str) -> Arc<dyn Authorizer>;
}

/// A request to authorize.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// A request for a non-resource path.
    Path {
        /// The path.
        path: String,
        /// The HTTP verb in lower case.
        verb: String,
    },
    /// A request for a resource.
    Resource(ResourceCheck),
}

/// A request for a resource; empty fields are unset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceCheck {
    /// The group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The unparsed field selector.
    pub field_selector: String,
    /// The unparsed label selector.
    pub label_selector: String,
    /// The verb.
    pub verb: String,
}

/// The decision of an authorizer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// The reason.
    pub reason: String,
    /// The evaluation error, if any.
    pub error: Option<String>,
}

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

/// The opaque types of this library.
pub(super) const TYPES: [&str; 5] = [AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION];

/// A partially specified authorization check.
#[derive(Clone, Debug)]
struct PartialCheck<T> {
    authorizer: Arc<dyn Authorizer>,
    asked: T,
}

#[derive(Clone, Debug)]
struct PathCheck(String);
#[derive(Clone, Debug)]
struct GroupCheck(String);

macro_rules! opaque {
    ($type:ty, $name:expr) => {
        impl Opaque for $type {
            fn ty(&self) -> Type {
                Type::object($name)
            }

            fn equals(&self, _: &dyn Opaque) -> bool {
                false
            }
        }
    };
}

opaque!(PartialCheck<()>, AUTHORIZER);
opaque!(PartialCheck<PathCheck>, PATH_CHECK);
opaque!(PartialCheck<GroupCheck>, GROUP_CHECK);
opaque!(PartialCheck<ResourceCheck>, RESOURCE_CHECK);
opaque!(Decision, DECISION);

/// The value of the variable `authorizer`.
pub fn authorizer_value(authorizer: Arc<dyn Authorizer>) -> Value<'static> {
    Value::opaque(PartialCheck { authorizer, asked: () })
}

/// The value of the variable `authorizer.requestResource`: the check of the request itself, without its verb.
pub fn resource_check_value(authorizer: Arc<dyn Authorizer>, check: ResourceCheck) -> Value<'static> {
    Value::opaque(PartialCheck { authorizer, asked: check })
}

/// The type of the variable `authorizer`.
pub fn authorizer_type() -> Type {
    Type::object(AUTHORIZER)
}

/// The type of the variable `authorizer.requestResource`.
pub fn resource_check_type() -> Type {
    Type::object(RESOURCE_CHECK)
}

/// The library.
pub fn library() -> Library {
    let library = TYPES.iter().fold(Library::new(), |library, name| library.named_type(Type::object(name)));
    costs(decisions(resource_checks(requests(library))))
}

/// A function with one overload on a receiver type.
fn member(id: &'static str, of: &str, params: &[Type], result: Type, call: Implementation) -> [Overload; 1] {
    let params = std::iter::once(Type::object(of)).chain(params.iter().cloned());
    [Overload::member(id, params, result, call)]
}

/// From the authorizer to a path or a resource.
fn requests(library: Library) -> Library {
    let (text, two) = ([Type::String], [Type::String, Type::String]);
    library
        .function("path", member("authorizer_path", AUTHORIZER, &text, Type::object(PATH_CHECK), path))
        .function(
            "group",
            member("authorizer_group", AUTHORIZER, &text, Type::object(GROUP_CHECK), |_, args| {
                then(args, |(): &()| GroupCheck(String::new()), |step, text| step.0 = text)
            }),
        )
        .function(
            "serviceAccount",
            member("authorizer_serviceaccount", AUTHORIZER, &two, Type::object(AUTHORIZER), service_account),
        )
        .function(
            "resource",
            member("groupcheck_resource", GROUP_CHECK, &text, Type::object(RESOURCE_CHECK), |_, args| {
                if args[1].as_str()?.trim().is_empty() {
                    return Err(Error::new("resource must not be empty"));
                }
                let group =
                    |step: &GroupCheck| ResourceCheck { group: step.0.clone(), ..ResourceCheck::default() };
                then(args, group, |check, text| check.resource = text)
            }),
        )
}

/// Setters of a resource check.
fn resource_checks(library: Library) -> Library {
    let details: [(&'static str, &'static str, Implementation); 5] = [
        ("subresource", "resourcecheck_subresource", |_, args| {
            then(args, ResourceCheck::clone, |check, text| check.subresource = text)
        }),
        ("namespace", "resourcecheck_namespace", |_, args| {
            then(args, ResourceCheck::clone, |check, text| check.namespace = text)
        }),
        ("name", "resourcecheck_name", |_, args| {
            then(args, ResourceCheck::clone, |check, text| check.name = text)
        }),
        ("fieldSelector", "authorizer_fieldselector", |_, args| {
            then(args, ResourceCheck::clone, |check, text| check.field_selector = text)
        }),
        ("labelSelector", "authorizer_labelselector", |_, args| {
            then(args, ResourceCheck::clone, |check, text| check.label_selector = text)
        }),
    ];
    details.into_iter().fold(library, |library, (name, id, call)| {
        let check = Type::object(RESOURCE_CHECK);
        library.function(name, member(id, RESOURCE_CHECK, &[Type::String], check, call))
    })
}

/// From a check to its decision, and the accessors of the decision.
fn decisions(library: Library) -> Library {
    let told = |id, result: Type, call: Implementation| member(id, DECISION, &[], result, call);
    library
        .function("check", checks())
        .function(
            "allowed",
            told("decision_allowed", Type::Bool, |_, args| Ok(decision(args)?.is_allowed.into())),
        )
        .function(
            "errored",
            told("decision_errored", Type::Bool, |_, args| Ok(decision(args)?.error.is_some().into())),
        )
        .function(
            "error",
            told("decision_error", Type::String, |_, args| {
                Ok(decision(args)?.error.clone().unwrap_or_default().into())
            }),
        )
        .function(
            "reason",
            told("decision_reason", Type::String, |_, args| Ok(decision(args)?.reason.clone().into())),
        )
}

fn checks() -> [Overload; 2] {
    let decided = || Type::object(DECISION);
    [
        Overload::member(
            "pathcheck_check",
            [Type::object(PATH_CHECK), Type::String],
            decided(),
            |_, args| {
                let step = args[0].as_opaque::<PartialCheck<PathCheck>>()?;
                let check = Check::Path { path: step.asked.0.clone(), verb: args[1].as_str()?.to_owned() };
                Ok(Value::opaque(step.authorizer.decide(&check)))
            },
        ),
        Overload::member(
            "resourcecheck_check",
            [Type::object(RESOURCE_CHECK), Type::String],
            decided(),
            |_, args| {
                let step = args[0].as_opaque::<PartialCheck<ResourceCheck>>()?;
                let check = ResourceCheck { verb: args[1].as_str()?.to_owned(), ..step.asked.clone() };
                Ok(Value::opaque(step.authorizer.decide(&Check::Resource(check))))
            },
        ),
    ]
}

/// Derives a check from the receiver and the string in the first argument.
fn then<'a, S, T>(
    args: &[Value<'a>],
    next: impl Fn(&S) -> T,
    set: impl Fn(&mut T, String),
) -> Result<Value<'a>>
where
    PartialCheck<S>: Opaque,
    PartialCheck<T>: Opaque,
{
    let step = args[0].as_opaque::<PartialCheck<S>>()?;
    let mut asked = next(&step.asked);
    set(&mut asked, args[1].as_str()?.to_owned());
    Ok(Value::opaque(PartialCheck { authorizer: Arc::clone(&step.authorizer), asked }))
}

fn path<'a>(_: &crate::Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    if args[1].as_str()?.trim().is_empty() {
        return Err(Error::new("path must not be empty"));
    }
    then(args, |(): &()| PathCheck(String::new()), |step, text| step.0 = text)
}

fn service_account<'a>(_: &crate::Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    let step = args[0].as_opaque::<PartialCheck<()>>()?;
    let (namespace, name) = (args[1].as_str()?, args[2].as_str()?);
    if !super::format::is_subdomain(name) {
        return Err(Error::new("Invalid service account name"));
    }
    if !super::format::is_label(namespace) {
        return Err(Error::new("Invalid service account namespace"));
    }
    Ok(authorizer_value(step.authorizer.for_service_account(namespace, name)))
}

fn decision<'v>(args: &'v [Value<'_>]) -> Result<&'v Decision> {
    args[0].as_opaque()
}

/// The cost of a check: within Kubernetes' limit an expression can make two.
const CHECK: u64 = 350_000;
/// The cost of a selector requirement.
const REQUIREMENT: u64 = LIST_CREATE + STRUCT_CREATE;

fn costs(mut library: Library) -> Library {
    let builders = ["serviceAccount", "path", "group", "resource", "subresource", "namespace", "name"];
    for function in builders.into_iter().chain(["allowed", "reason", "error", "errored"]) {
        library = library.estimates(function, cost::one).costs(function, cost::one_run);
    }
    for function in ["fieldSelector", "labelSelector"] {
        library = library
            .estimates(function, |call| Some(CallEstimate::of(selector(call.size(call.args.first()?)))))
            .costs(function, |call| Some(selector(SizeEstimate::fixed(call.args.get(1)?.cost_size())).max));
    }
    library
        .estimates("check", |_| Some(CallEstimate::of(CostEstimate::fixed(CHECK))))
        .costs("check", |_| Some(CHECK))
}

/// The cost of parsing a selector, whose shortest requirement has two characters.
#[expect(clippy::cast_precision_loss, reason = "a small constant")]
fn selector(size: SizeEstimate) -> CostEstimate {
    let requirements = size.cost(0.5).scaled(REQUIREMENT as f64);
    CostEstimate::fixed(LIST_CREATE).plus(size.cost(STRING_TRAVERSAL_FACTOR)).plus(requirements)
}
