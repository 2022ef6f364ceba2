//! Unification of types: binds type variables, and reverts the bindings if types do not match.

use std::sync::Arc;

use crate::{OpaqueType, Type};

/// The bindings of type variables.
#[derive(Default)]
pub(super) struct Bindings {
    bound: Vec<Option<Type>>,
    /// The previous bindings, in the order of changes.
    trail: Vec<(u32, Option<Type>)>,
}

impl Bindings {
    /// A new unbound variable.
    pub fn fresh(&mut self) -> Type {
        let number = u32::try_from(self.bound.len()).expect("the number of nodes is limited");
        self.bound.push(None);
        Type::Variable(number)
    }

    fn find(&self, variable: u32) -> Option<&Type> {
        self.bound.get(variable as usize)?.as_ref()
    }

    fn bind(&mut self, variable: u32, ty: Type) {
        let old = self.bound[variable as usize].replace(ty);
        self.trail.push((variable, old));
    }

    /// Whether values of one type can be used as another; if not, nothing is bound.
    pub fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.all_assignable(std::iter::once((from, to)))
    }

    /// Whether all pairs are assignable.
    pub fn all_assignable<'t>(&mut self, pairs: impl Iterator<Item = (&'t Type, &'t Type)>) -> bool {
        self.trail.clear();
        for (from, to) in pairs {
            if !self.try_assign(from, to) {
                for (variable, old) in self.trail.drain(..).rev() {
                    self.bound[variable as usize] = old;
                }
                return false;
            }
        }
        true
    }

    fn try_assign(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Variable(variable) = to {
            match self.substitution(from, *variable) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Variable(variable) = from {
            return self.substitution(to, *variable).0;
        }
        match (from, to) {
            (Type::Dyn | Type::Any | Type::Error, _) | (_, Type::Dyn | Type::Any | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Wrapper(inner), other) => self.try_assign(&inner.clone(), other),
            (other, Type::Wrapper(inner)) => self.try_assign(other, &inner.clone()),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(one), Type::List(two)) => self.try_assign(one, two),
            (Type::Map(one), Type::Map(two)) => {
                self.try_assign(&one.0, &two.0) && self.try_assign(&one.1, &two.1)
            }
            (Type::Opaque(one), Type::Opaque(two)) => {
                one.name == two.name
                    && one.params.len() == two.params.len()
                    && one.params.iter().zip(&two.params).all(|(one, two)| self.try_assign(one, two))
            }
            _ => from == to,
        }
    }

    /// Whether a type can be bound to a variable, and whether the variable was bound before.
    fn substitution(&mut self, ty: &Type, variable: u32) -> (bool, bool) {
        if *ty == Type::Variable(variable) {
            return (true, true);
        }
        let Some(bound) = self.find(variable).cloned() else {
            let is_free = !self.mentions(ty, variable);
            if is_free {
                self.bind(variable, ty.clone());
            }
            return (is_free, false);
        };
        if *ty == bound {
            return (true, true);
        }
        if !self.try_assign(ty, &bound) {
            return (false, true);
        }
        let general = most_general(ty, &bound).clone();
        if !self.mentions(&general, variable) {
            self.bind(variable, general);
        }
        (true, true)
    }

    /// Whether a variable occurs in a type.
    fn mentions(&self, ty: &Type, variable: u32) -> bool {
        match ty {
            Type::Variable(other) if *other == variable => true,
            Type::Variable(other) => self.find(*other).is_some_and(|bound| self.mentions(bound, variable)),
            Type::Map(pair) => self.mentions(&pair.0, variable) || self.mentions(&pair.1, variable),
            Type::Wrapper(inner) => self.mentions(inner, variable),
            _ => ty.params().iter().any(|param| self.mentions(param, variable)),
        }
    }

    /// Replaces the variables of a type; unbound ones stay, or become `dyn` if `is_final`.
    pub fn substitute(&self, ty: &Type, is_final: bool) -> Type {
        let inner = |ty: &Type| self.substitute(ty, is_final);
        match ty {
            Type::Variable(variable) => match self.find(*variable) {
                Some(bound) => inner(bound),
                None if is_final => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(item) => Type::list(inner(item)),
            Type::Map(pair) => Type::map(inner(&pair.0), inner(&pair.1)),
            Type::Type(Some(of)) => Type::type_of(inner(of)),
            Type::Opaque(opaque) if !opaque.params.is_empty() => Type::Opaque(Arc::new(OpaqueType {
                name: opaque.name.clone(),
                params: opaque.params.iter().map(inner).collect(),
            })),
            _ => ty.clone(),
        }
    }
}

fn is_nullable(ty: &Type) -> bool {
    use Type::{Duration, Null, Object, Opaque, Timestamp, Wrapper};
    matches!(ty, Null | Opaque(_) | Object(_) | Duration | Timestamp | Wrapper(_))
}

/// The more general one of two types.
pub(super) fn most_general<'t>(one: &'t Type, two: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(one, two) { one } else { two }
}

fn is_equal_or_less_specific(one: &Type, two: &Type) -> bool {
    match (one, two) {
        (Type::Dyn | Type::Any | Type::Variable(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Variable(_)) => false,
        (Type::List(one), Type::List(two)) => is_equal_or_less_specific(one, two),
        (Type::Map(one), Type::Map(two)) => {
            is_equal_or_less_specific(&one.0, &two.0) && is_equal_or_less_specific(&one.1, &two.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        (Type::Opaque(one), Type::Opaque(two)) => {
            one.name == two.name
                && one.params.len() == two.params.len()
                && one.params.iter().zip(&two.params).all(|(one, two)| is_equal_or_less_specific(one, two))
        }
        _ => one == two,
    }
}

/// Replaces the parameters of a signature by new variables.
pub(super) fn instantiate(types: &[Type], bindings: &mut Bindings) -> Vec<Type> {
    let mut known = Vec::new();
    types.iter().map(|ty| replace_params(ty, bindings, &mut known)).collect()
}

fn replace_params(ty: &Type, bindings: &mut Bindings, known: &mut Vec<(&'static str, Type)>) -> Type {
    match ty {
        Type::Param(name) => match known.iter().find(|(other, _)| other == name) {
            Some((_, variable)) => variable.clone(),
            None => {
                let variable = bindings.fresh();
                known.push((name, variable.clone()));
                variable
            }
        },
        Type::List(item) => Type::list(replace_params(item, bindings, known)),
        Type::Map(pair) => {
            Type::map(replace_params(&pair.0, bindings, known), replace_params(&pair.1, bindings, known))
        }
        Type::Type(Some(of)) => Type::type_of(replace_params(of, bindings, known)),
        Type::Opaque(opaque) if !opaque.params.is_empty() => {
            let params = opaque.params.iter().map(|param| replace_params(param, bindings, known)).collect();
            Type::Opaque(Arc::new(OpaqueType { name: opaque.name.clone(), params }))
        }
        _ => ty.clone(),
    }
}
