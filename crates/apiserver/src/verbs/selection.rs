//! The selection of a list, watch or deletecollection: namespace, name, selectors.

use model::ObjectKey;
use model::error::Error;
use model::selector::{self, Requirement, Selector, Target, Test};
use store::ListQuery;

use super::Call;

/// A selection of objects. Field selectors on name and namespace are resolved.
#[derive(Clone, Debug)]
pub struct Selection {
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub selector: Selector,
    /// Whether the client sent a selector.
    pub selective: bool,
}

impl Selection {
    /// The key of the only possible object, if only its name is selected.
    pub fn lookup(&self, call: &Call) -> Option<ObjectKey> {
        let name = self.name.as_ref().filter(|_| self.selector.is_empty())?;
        match (&self.namespace, call.resource_type.namespaced) {
            (Some(namespace), true) => Some(ObjectKey::new(&call.resource_type.resource, namespace, name)),
            (None, false) => Some(ObjectKey::new(&call.resource_type.resource, "", name)),
            _ => None,
        }
    }

    /// The store query, from the start and at the newest revision.
    pub fn query(&self, call: &Call, limit: usize) -> ListQuery {
        let mut selector = self.selector.clone();
        selector.requirements.extend(self.name.as_ref().map(|name| Requirement {
            target: Target::Field,
            key: "metadata.name".to_owned(),
            test: Test::In(vec![name.clone()]),
        }));
        let (resource, namespace) = (call.resource_type.resource.clone(), self.namespace.clone());
        ListQuery { resource, namespace, selector, at: None, after: None, limit }
    }
}

/// Parses the selection of a call.
pub fn selection(call: &Call) -> Result<Selection, Error> {
    let mut requirements = selector::label::parse(call.query.text("labelSelector"))?;
    let mut fields = selector::field::parse(call.query.text("fieldSelector"), &|_| true)?;
    for field in &mut fields {
        let refused = |message| Error::BadRequest { message };
        if let Some(conversion) = call.resource_type.conversion() {
            field.key = conversion.stored_field(&field.key).map_err(refused)?.to_owned();
        }
        call.resource_type.strategy.check_field(&field.key).map_err(refused)?;
    }
    requirements.extend(fields);
    let selective = !requirements.is_empty();
    let mut selection = Selection {
        namespace: Some(call.namespace()).filter(|namespace| !namespace.is_empty()).map(str::to_owned),
        name: Some(&call.path.name).filter(|name| !name.is_empty()).cloned(),
        selector: Selector::default(),
        selective,
    };
    for requirement in requirements {
        let slot = match (requirement.target, requirement.key.as_str()) {
            (Target::Field, "metadata.name") => &mut selection.name,
            (Target::Field, "metadata.namespace") if call.resource_type.namespaced => {
                &mut selection.namespace
            }
            _ => {
                selection.selector.requirements.push(requirement);
                continue;
            }
        };
        match (&requirement.test, &slot) {
            (Test::In(values), None) if values.len() == 1 => *slot = Some(values[0].clone()),
            (Test::In(values), Some(given)) if values.len() == 1 && values[0] == **given => {}
            _ => selection.selector.requirements.push(requirement),
        }
    }
    Ok(selection)
}
