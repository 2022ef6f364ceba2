//! Bindings of admission policies: match criteria, parameters and actions.

use model::Object;
use model::object::{has, text, texts, value};
use model::selector::Selector;
use serde_json::Value;

use super::matching::{Criteria, selector};

/// A binding of a policy.
#[derive(Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// Its match criteria; `None` for those of the policy.
    pub criteria: Option<Criteria>,
    /// The reference to its parameters.
    pub params: Option<ParamRef>,
    /// The actions on a failed validation: `Deny`, `Warn`, `Audit`.
    pub actions: Vec<String>,
}

/// The reference to parameters.
#[derive(Debug)]
pub struct ParamRef {
    /// The namespace; empty for that of the request.
    pub namespace: String,
    /// The objects.
    pub of: Params,
    /// The action if there are none.
    pub not_found: NotFound,
}

/// The objects that are parameters.
#[derive(Debug, PartialEq)]
pub enum Params {
    /// One object by name.
    Named(String),
    /// Objects by label selector.
    Selected(Selector),
}

/// The action if the parameters do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// The binding does not apply.
    Allow,
    /// The request is refused.
    Deny,
}

impl Binding {
    /// Parses a valid binding.
    pub fn read(object: &Object) -> Self {
        let spec = |path: &[&str]| value(object, &[&["spec"], path].concat()).and_then(Value::as_object);
        Self {
            name: text(object, &["metadata", "name"]).to_owned(),
            policy: text(object, &["spec", "policyName"]).to_owned(),
            criteria: spec(&["matchResources"]).map(Criteria::read),
            params: spec(&["paramRef"]).map(ParamRef::read),
            actions: texts(object, &["spec", "validationActions"]).into_iter().map(str::to_owned).collect(),
        }
    }

    /// Whether the binding has an action.
    pub fn does(&self, action: &str) -> bool {
        self.actions.iter().any(|known| known == action)
    }
}

impl ParamRef {
    fn read(reference: &Object) -> Self {
        let of = match text(reference, &["name"]) {
            "" if has(reference, &["selector"]) => Params::Selected(selector(reference.get("selector"))),
            name => Params::Named(name.to_owned()),
        };
        let not_found = match text(reference, &["parameterNotFoundAction"]) {
            "Deny" => NotFound::Deny,
            _ => NotFound::Allow,
        };
        Self { namespace: text(reference, &["namespace"]).to_owned(), of, not_found }
    }

    /// The reason why missing parameters refuse a request, if they do.
    pub fn missing(&self) -> Option<&'static str> {
        match self.not_found {
            NotFound::Allow => None,
            NotFound::Deny => Some("no params found for policy binding with `Deny` parameterNotFoundAction"),
        }
    }
}
