//! The type checker: assigns a type to every node and resolves names and calls.

mod aggregate;
mod call;
mod literals;
mod unify;

use std::collections::HashSet;

use self::unify::Bindings;
use crate::{
    Env, Issue, Issues, Type,
    syntax::{Ast, Comprehension, Expr, ExprId, ExprKind, Literal},
};

/// A type-checked AST.
pub(crate) struct Checked {
    pub ast: Ast,
    /// The type of each node, by id.
    pub types: Vec<Type>,
    /// The reference of each node, by id.
    pub references: Vec<Option<Reference>>,
}

/// The referent of a name or a call.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable, declared or of a comprehension: the node has its full name.
    Variable,
    /// A type name.
    Type(Type),
    /// A function with its matching overloads.
    Overloads(&'static str, Vec<usize>),
}

impl Checked {
    pub fn ty(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    pub fn reference(&self, expr: &Expr) -> Option<&Reference> {
        self.references[expr.id as usize].as_ref()
    }
}

/// Type-checks an AST in an environment.
pub(crate) fn check(source: &str, mut ast: Ast, env: &Env) -> Result<Checked, Issues> {
    let count = ast.positions.len();
    let dotted = env.libraries.types.keys().map(String::as_str).chain(env.variables.iter().map(|v| &*v.name));
    let dotted_roots = dotted.filter_map(|name| name.split_once('.').map(|(root, _)| root));
    let dotted_roots = dotted_roots.chain(env.libraries.open_types.iter().copied()).collect();
    let mut checker = Checker {
        env,
        positions: &ast.positions,
        types: vec![Type::Error; count],
        references: vec![None; count],
        bindings: Bindings::default(),
        locals: Vec::new(),
        issues: Vec::new(),
        dotted_roots,
    };
    checker.check(&mut ast.root);
    let Checker { types, references, bindings, issues, .. } = checker;
    if !issues.is_empty() {
        return Err(Issues::new(source, issues));
    }
    let types = types.iter().map(|ty| bindings.substitute(ty, true)).collect();
    let checked = Checked { ast, types, references };
    let issues = literals::validate(&checked, env);
    if issues.is_empty() { Ok(checked) } else { Err(Issues::new(source, issues)) }
}

struct Checker<'e> {
    env: &'e Env,
    positions: &'e [u32],
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
    bindings: Bindings,
    /// Comprehension variables, innermost last.
    locals: Vec<(String, Type)>,
    issues: Vec<Issue>,
    /// The first parts of qualified names, so that other chains of selections are not looked up.
    dotted_roots: HashSet<&'e str>,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ty = match &mut expr.kind {
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Ident(_) => self.ident(expr),
            ExprKind::Select { .. } => self.select(expr),
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::List { items, optional } => self.list(items, optional),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { name, fields } => self.object(id, name, fields),
            ExprKind::Comprehension(fold) => self.comprehension(fold),
        };
        self.types[id as usize] = ty;
    }

    fn ty(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    fn error(&mut self, id: ExprId, message: String) {
        self.issues.push(Issue { position: Some(self.positions[id as usize]), message });
    }

    fn undeclared(&mut self, id: ExprId, name: &str) -> Type {
        self.error(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.error(id, format!("expected type '{expected}' but found '{found}'"));
    }

    /// Resolves a name: a comprehension variable, a declared variable, or a type.
    fn look_up(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, ty)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Some((ty.clone(), Reference::Variable));
        }
        if let Some(variable) = self.env.variables.iter().rev().find(|variable| &*variable.name == name) {
            return Some((variable.ty.clone(), Reference::Variable));
        }
        let ty = self.env.libraries.named_type(name)?;
        Some((Type::type_of(ty.clone()), Reference::Type(ty)))
    }

    fn ident(&mut self, expr: &mut Expr) -> Type {
        let ExprKind::Ident(name) = &mut expr.kind else { return Type::Error };
        let Some((ty, reference)) = self.look_up(name) else {
            let name = name.clone();
            return self.undeclared(expr.id, &name);
        };
        if name.starts_with('.') {
            name.remove(0);
        }
        self.references[expr.id as usize] = Some(reference);
        ty
    }

    /// Checks a selection, or a chain of selections that is a qualified name.
    fn select(&mut self, expr: &mut Expr) -> Type {
        if let Some(ty) = self.dotted_name(expr) {
            return ty;
        }
        let id = expr.id;
        let ExprKind::Select { operand, field, is_test } = &mut expr.kind else { return Type::Error };
        let ty = self.field_type(id, operand, field, false);
        if *is_test { Type::Bool } else { self.bindings.substitute(&ty, false) }
    }

    fn dotted_name(&mut self, expr: &mut Expr) -> Option<Type> {
        if !self.has_dotted_root(expr) {
            return None;
        }
        let name = expr.qualified_name()?;
        let (ty, reference) = self.look_up(&name)?;
        self.references[expr.id as usize] = Some(reference);
        expr.kind = ExprKind::Ident(name.strip_prefix('.').map_or(name.clone(), str::to_owned));
        Some(ty)
    }

    fn has_dotted_root(&self, expr: &Expr) -> bool {
        let mut inner = expr;
        while let ExprKind::Select { operand, .. } = &inner.kind {
            inner = operand;
        }
        match &inner.kind {
            ExprKind::Ident(name) => self.dotted_roots.contains(name.strip_prefix('.').unwrap_or(name)),
            _ => false,
        }
    }

    /// The type of a field of an operand, which is checked first.
    fn field_type(&mut self, id: ExprId, operand: &mut Expr, field: &str, is_optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.bindings.substitute(self.ty(operand), false);
        let (target, was_optional) = match operand_type.optional_inner() {
            Some(inner) => (inner, true),
            None => (&operand_type, false),
        };
        let result = match target {
            Type::Map(pair) => pair.1.clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(field) => field.declared.ty.clone(),
                None if self.env.libraries.is_open(&object.name) => Type::Dyn,
                None => {
                    self.error(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Variable(_) => {
                self.bindings.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                self.error(id, format!("type '{target}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || is_optional { Type::optional(result) } else { result }
    }

    fn comprehension(&mut self, fold: &mut Comprehension) -> Type {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.bindings.substitute(self.ty(&fold.range), false);
        let accumulated = self.ty(&fold.init).clone();
        let has_second = fold.second_variable.is_some();
        let (first, second) = match &range {
            Type::List(item) if has_second => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Any | Type::Error | Type::Variable(_) => {
                self.bindings.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                self.error(
                    fold.range.id,
                    format!(
                        "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                    ),
                );
                (Type::Error, Type::Error)
            }
        };
        self.locals.push((fold.accumulator.clone(), accumulated.clone()));
        let outer = self.locals.len();
        self.locals.push((fold.variable.clone(), first));
        self.locals.extend(fold.second_variable.clone().map(|name| (name, second)));
        self.check(&mut fold.condition);
        self.require(&fold.condition, &Type::Bool);
        self.check(&mut fold.step);
        self.require(&fold.step, &accumulated);
        self.locals.truncate(outer);
        self.check(&mut fold.result);
        self.locals.pop();
        self.bindings.substitute(self.ty(&fold.result), false)
    }

    fn require(&mut self, expr: &Expr, expected: &Type) {
        let found = self.ty(expr).clone();
        if !self.bindings.assignable(expected, &found) {
            self.mismatch(expr.id, expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
