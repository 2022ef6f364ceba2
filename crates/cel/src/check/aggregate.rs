//! Type check of list, map and object literals.

use super::{Checker, unify::most_general};
use crate::{
    Type,
    syntax::{Expr, ExprId, FieldInit, MapEntry},
};

impl Checker<'_> {
    pub(super) fn list(&mut self, items: &mut [Expr], optional: &[usize]) -> Type {
        let mut common = None;
        for (index, item) in items.iter_mut().enumerate() {
            self.check(item);
            let ty = self.entry_type(item, optional.contains(&index));
            common = Some(self.join(common, ty));
        }
        Type::list(common.unwrap_or_else(|| self.bindings.fresh()))
    }

    pub(super) fn map(&mut self, entries: &mut [MapEntry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(&mut entry.key);
            let key = self.ty(&entry.key).clone();
            keys = Some(self.join(keys, key));
            self.check(&mut entry.value);
            let value = self.entry_type(&entry.value, entry.is_optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.bindings.fresh());
        Type::map(key, values.unwrap_or_else(|| self.bindings.fresh()))
    }

    /// The type of an item or value; for an optional one, the type inside.
    fn entry_type(&mut self, expr: &Expr, is_optional: bool) -> Type {
        let ty = self.ty(expr).clone();
        if !is_optional {
            return ty;
        }
        match ty.optional_inner() {
            Some(inner) => inner.clone(),
            None => {
                if !ty.is_dyn() {
                    self.mismatch(expr.id, &Type::optional(ty.clone()), &ty);
                }
                ty
            }
        }
    }

    /// The common type of two items. Items of different types become `dyn`; the validator reports them later.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.bindings.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        Type::Dyn
    }

    pub(super) fn object(&mut self, id: ExprId, name: &mut String, fields: &mut [FieldInit]) -> Type {
        let Some(ty) = self.env.libraries.named_type(name.strip_prefix('.').unwrap_or(name)) else {
            let is_variable = self.look_up(name).is_some();
            if is_variable {
                self.error(id, format!("'{name}' is not a type"));
            } else {
                self.undeclared(id, &name.clone());
            }
            return Type::Error;
        };
        let Type::Object(object) = &ty else {
            self.error(id, format!("'{}' is not a message type", ty.name()));
            return Type::Error;
        };
        *name = object.name.to_string();
        for init in fields {
            self.check(&mut init.value);
            if self.env.libraries.is_open(&object.name) {
                self.entry_type(&init.value, init.is_optional);
                continue;
            }
            let Some(field) = object.fields.get(&*init.name) else {
                self.error(init.id, format!("undefined field '{}'", init.name));
                continue;
            };
            let value = self.entry_type(&init.value, init.is_optional);
            let expected = &field.declared.ty;
            if !self.bindings.assignable(expected, &value) {
                self.error(
                    init.id,
                    format!(
                        "expected type of field '{}' is '{expected}' but provided type is '{value}'",
                        init.name
                    ),
                );
            }
        }
        ty
    }
}
