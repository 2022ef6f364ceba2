//! Where a policy holds, with which parameters, and what becomes of what it refuses.

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
    /// The policy that holds.
    pub policy: String,
    /// Where it holds; nothing for wherever the policy does.
    pub criteria: Option<Criteria>,
    /// Where its parameters come from.
    pub params: Option<ParamRef>,
    /// What becomes of what is refused: `Deny`, `Warn`, `Audit`.
    pub actions: Vec<String>,
}

/// Where parameters come from.
#[derive(Debug)]
pub struct ParamRef {
    /// The namespace; empty for that of the request.
    pub namespace: String,
    /// Which objects.
    pub of: Params,
    /// What if there are none.
    pub not_found: NotFound,
}

/// Which objects are parameters.
#[derive(Debug, PartialEq)]
pub enum Params {
    /// The one of a name.
    Named(String),
    /// Those that a selector selects.
    Selected(Selector),
}

/// What becomes of requests when there are no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// The binding does not hold.
    Allow,
    /// They are refused.
    Deny,
}

impl Binding {
    /// Reads a binding, which is valid.
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

    /// Why there are no parameters, where that refuses a request.
    pub fn missing(&self) -> Option<&'static str> {
        match self.not_found {
            NotFound::Allow => None,
            NotFound::Deny => Some("no params found for policy binding with `Deny` parameterNotFoundAction"),
        }
    }
}
