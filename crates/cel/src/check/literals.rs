//! Validation of constant arguments, and of literals that must have items of one type.

use super::{Checked, Reference};
use crate::{
    CallSite, Duration, Env, Issue, Timestamp, Type, pattern,
    syntax::{Expr, ExprId, ExprKind, Literal},
};

/// The function whose argument list may have items of different types.
const FORMAT: &str = "format";

/// Finds errors that every evaluation would run into.
pub(super) fn validate(checked: &Checked, env: &Env) -> Vec<Issue> {
    let mut validator = Validator { checked, env, issues: Vec::new() };
    validator.visit(&checked.ast.root, false);
    validator.issues
}

struct Validator<'v> {
    checked: &'v Checked,
    env: &'v Env,
    issues: Vec<Issue>,
}

impl Validator<'_> {
    fn visit(&mut self, expr: &Expr, is_in_format: bool) {
        let mut is_in_format = is_in_format;
        match &expr.kind {
            ExprKind::Call { target, function, args } => {
                self.constant_argument(function, args);
                self.call_site(expr, target.as_deref(), args);
                is_in_format |= function == FORMAT;
            }
            ExprKind::List { items, optional } if !is_in_format => {
                let types = items.iter().enumerate();
                let types = types.map(|(index, item)| (item.id, self.part(item, optional.contains(&index))));
                self.homogeneous(types.collect(), true);
            }
            ExprKind::Map(entries) if !is_in_format => {
                self.homogeneous(
                    entries.iter().map(|entry| (entry.key.id, self.part(&entry.key, false))).collect(),
                    false,
                );
                let values = entries.iter();
                let values = values.map(|entry| (entry.value.id, self.part(&entry.value, entry.is_optional)));
                self.homogeneous(values.collect(), false);
            }
            _ => {}
        }
        for child in expr.children() {
            self.visit(child, is_in_format);
        }
    }

    fn error(&mut self, id: ExprId, message: String) {
        let position = Some(self.checked.ast.positions[id as usize]);
        self.issues.push(Issue { position, message });
    }

    /// Collects the errors that the validators of the called overloads report.
    fn call_site(&mut self, expr: &Expr, target: Option<&Expr>, args: &[Expr]) {
        let Some(Reference::Overloads(name, indexes)) = self.checked.reference(expr) else { return };
        let overloads = &self.env.libraries.functions[name];
        let site = CallSite { id: expr.id, target, args, types: &self.checked.types };
        for validate in indexes.iter().filter_map(|index| overloads[*index].validate) {
            for (id, message) in validate(&site) {
                self.error(id, message);
            }
        }
    }

    fn constant_argument(&mut self, function: &str, args: &[Expr]) {
        let Some(Expr { id, kind: ExprKind::Literal(literal) }) = args.first() else { return };
        let is_good = match (function, literal) {
            ("duration", Literal::String(text)) => Duration::parse(text).is_some(),
            ("duration", Literal::Int(_)) => false,
            ("timestamp", Literal::String(text)) => matches!(Timestamp::parse(text), Some(Ok(_))),
            ("timestamp", Literal::Int(seconds)) => Timestamp::new(*seconds, 0).is_ok(),
            ("matches", Literal::String(text)) => pattern::compile(text).is_ok(),
            _ => return,
        };
        if !is_good {
            self.error(*id, format!("invalid {function} argument"));
        }
    }

    fn part(&self, expr: &Expr, is_optional: bool) -> Type {
        let ty = self.checked.ty(expr);
        if is_optional { ty.optional_inner().unwrap_or(ty).clone() } else { ty.clone() }
    }

    fn homogeneous(&mut self, types: Vec<(ExprId, Type)>, only_first: bool) {
        let Some((_, first)) = types.first().cloned() else { return };
        for (id, ty) in types {
            if first != ty {
                self.error(id, format!("expected type '{first}' but found '{ty}'"));
                if only_first {
                    return;
                }
            }
        }
    }
}
