//! Overload resolution of calls.

use super::{Checker, Reference, unify::instantiate};
use crate::{
    Type,
    syntax::{Expr, ExprId, ExprKind, Literal, operators},
};

impl Checker<'_> {
    pub(super) fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let ExprKind::Call { target, function, args } = &mut expr.kind else { return Type::Error };
        if function == operators::OPT_SELECT {
            return self.optional_select(id, args);
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        if let Some(receiver) = target.as_deref_mut() {
            let qualified = receiver.qualified_name().map(|prefix| format!("{prefix}.{function}"));
            let global = qualified.and_then(|name| self.function(&name));
            let Some(name) = global else {
                self.check(receiver);
                return match self.function(function) {
                    Some(name) => self.resolve(id, name, Some(receiver), args),
                    None => {
                        let function = function.clone();
                        self.undeclared(id, &function)
                    }
                };
            };
            // The receiver is part of a qualified function name and not a value.
            *target = None;
            *function = name.to_owned();
            return self.resolve(id, name, None, args);
        }
        match self.function(function) {
            Some(name) => {
                *function = name.to_owned();
                self.resolve(id, name, None, args)
            }
            None => {
                let function = function.clone();
                self.undeclared(id, &function)
            }
        }
    }

    fn function(&self, name: &str) -> Option<&'static str> {
        let name = name.strip_prefix('.').unwrap_or(name);
        self.env.libraries.functions.get_key_value(name).map(|(name, _)| *name)
    }

    /// Checks `a.?b`: a selection with an optional result.
    fn optional_select(&mut self, id: ExprId, args: &mut [Expr]) -> Type {
        let [operand, field] = args else { return Type::Error };
        let ExprKind::Literal(Literal::String(name)) = &field.kind else { return Type::Error };
        self.types[field.id as usize] = Type::String;
        let ty = self.field_type(id, operand, name, true);
        self.bindings.substitute(&ty, false)
    }

    fn resolve(&mut self, id: ExprId, name: &'static str, receiver: Option<&Expr>, args: &[Expr]) -> Type {
        if name == operators::AND || name == operators::OR {
            return self.logic(id, name, args);
        }
        let types: Vec<Type> = receiver.into_iter().chain(args).map(|arg| self.ty(arg).clone()).collect();
        let is_member = receiver.is_some();
        let overloads = &self.env.libraries.functions[name];
        let (mut fitting, mut result): (Vec<usize>, Option<Type>) = (Vec::new(), None);
        for (index, overload) in overloads.iter().enumerate() {
            if overload.is_member != is_member || overload.params.len() != types.len() {
                continue;
            }
            let mut signature = overload.params.clone();
            signature.push(overload.result.clone());
            let mut signature = instantiate(&signature, &mut self.bindings);
            let returned = signature.pop().expect("the result was pushed last");
            if !self.bindings.all_assignable(types.iter().zip(&signature)) {
                continue;
            }
            fitting.push(index);
            let returned = self.bindings.substitute(&returned, false);
            result = Some(match result {
                Some(first) if !first.is_dyn() && first != returned => Type::Dyn,
                Some(first) => first,
                None => returned,
            });
        }
        let Some(result) = result else { return self.no_overload(id, name, &types, is_member) };
        self.references[id as usize] = Some(Reference::Overloads(name, fitting));
        result
    }

    fn logic(&mut self, id: ExprId, name: &'static str, args: &[Expr]) -> Type {
        let mut is_good = true;
        for arg in args {
            let found = self.ty(arg).clone();
            if !self.bindings.assignable(&found, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, &found);
                is_good = false;
            }
        }
        if !is_good {
            return Type::Error;
        }
        self.references[id as usize] = Some(Reference::Overloads(name, vec![0]));
        Type::Bool
    }

    fn no_overload(&mut self, id: ExprId, name: &str, types: &[Type], is_member: bool) -> Type {
        let shown: Vec<_> = types.iter().map(|ty| self.bindings.substitute(ty, true).to_string()).collect();
        let signature = match &shown[..] {
            [receiver, args @ ..] if is_member => format!("{receiver}.({})", args.join(", ")),
            args => format!("({})", args.join(", ")),
        };
        self.error(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
        Type::Error
    }
}
