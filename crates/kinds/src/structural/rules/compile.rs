//! Compiles the rules of a schema.

use std::sync::{Arc, LazyLock};

use cel::{CompileError, Declared, Env, Program, Type};

use super::{
    Rule,
    declare::{SELF_TYPE, Typed, declare},
};
use crate::structural::{
    field_path,
    node::{Node, Values},
};

/// The cost limit of one evaluation of a rule.
pub(super) const CALL_LIMIT: u64 = 1_000_000;

/// The variable of the validated value.
const SELF: &str = "self";
/// The variable of the same value before an update.
const OLD_SELF: &str = "oldSelf";

/// Kubernetes' CEL environment without variables.
pub(crate) static ENVIRONMENT: LazyLock<Env> =
    LazyLock::new(|| Env::new(cel::library::kubernetes::libraries()));

/// The compiled rules of a schema.
#[derive(Debug)]
pub struct Rules {
    pub(super) root: RuleNode,
}

/// A schema node with rules at or below it.
#[derive(Debug)]
pub(super) struct RuleNode {
    pub rules: Box<[Compiled]>,
    pub declared: Arc<Declared>,
    pub fields: Box<[(Box<str>, RuleNode)]>,
    pub values: Option<Box<RuleNode>>,
    pub items: Option<Box<RuleNode>>,
}

/// A compiled rule.
pub(super) struct Compiled {
    pub source: Rule,
    pub program: Result<Program, String>,
    pub uses_old_self: bool,
    pub message: Option<Program>,
    /// The `fieldPath` of the rule, relative to its node.
    pub field_path: Option<String>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Compiled({})", self.source.rule)
    }
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none. A rule that does not compile fails at evaluation: a CRD
    /// with such a rule was refused.
    pub fn compile(root: &Node) -> Option<Self> {
        if !has_rules(root) {
            return None;
        }
        let typed = declare(root, true, SELF_TYPE)?;
        place(root, &typed).map(|root| Self { root })
    }
}

fn rules_of(node: &Node) -> &[Rule] {
    node.checks.as_deref().map_or(&[], |checks| &checks.rules)
}

/// Whether a schema node or one below it has rules.
pub(super) fn has_rules(node: &Node) -> bool {
    !rules_of(node).is_empty()
        || node.fields.iter().any(|(_, field)| has_rules(field))
        || node.items.as_deref().is_some_and(has_rules)
        || matches!(&node.values, Values::Of(values) if has_rules(values))
}

fn place(node: &Node, typed: &Typed) -> Option<RuleNode> {
    let environment = RuleEnvironment::new(typed);
    let rules: Box<[Compiled]> = rules_of(node)
        .iter()
        .filter(|rule| !rule.rule.trim().is_empty())
        .map(|rule| environment.compiled(rule, node))
        .collect();
    let fields: Box<[_]> =
        node.fields.iter().filter_map(|(name, field)| field_place(name, field, typed)).collect();
    let below = |node: Option<&Node>| {
        let (node, typed) = (node?, typed.item.as_deref()?);
        if has_rules(node) { place(node, typed).map(Box::new) } else { None }
    };
    let items = below(node.items.as_deref());
    let values = below(match &node.values {
        Values::Of(values) => Some(values),
        _ => None,
    });
    let is_empty = rules.is_empty() && fields.is_empty() && items.is_none() && values.is_none();
    let declared = Arc::clone(&typed.declared);
    (!is_empty).then_some(RuleNode { rules, declared, fields, values, items })
}

fn field_place(name: &str, field: &Node, typed: &Typed) -> Option<(Box<str>, RuleNode)> {
    if !has_rules(field) {
        return None;
    }
    let place = match typed.fields.get(name) {
        Some(typed) => place(field, typed),
        // A field that expressions cannot name may still have rules.
        None => place(field, &declare(field, field.embedded, SELF_TYPE)?),
    };
    Some((name.into(), place?))
}

/// The environment of the rules of one node.
pub(super) struct RuleEnvironment {
    env: Env,
    optional_env: Env,
    /// The type name of the value, which is derived from its path in the object.
    type_name: Box<str>,
}

/// A compiled expression with its estimated cost.
pub(super) struct Checked {
    pub program: Program,
    pub max_cost: u64,
}

impl RuleEnvironment {
    pub fn new(typed: &Typed) -> Self {
        let env = ENVIRONMENT.clone().declared(SELF, Arc::clone(&typed.declared));
        let optional_env = env.clone().variable(OLD_SELF, Type::optional(typed.declared.ty.clone()));
        let env = env.declared(OLD_SELF, Arc::clone(&typed.declared));
        Self { env, optional_env, type_name: typed.name.clone() }
    }

    fn env(&self, rule: &Rule) -> &Env {
        if rule.optional_old_self == Some(true) { &self.optional_env } else { &self.env }
    }

    /// Compiles a rule; the error is Kubernetes' message.
    pub fn rule(&self, rule: &Rule) -> Result<Checked, String> {
        let program = self.env(rule).compile(&rule.rule).map_err(|error| self.refusal(&error, ""))?;
        match program.ty() {
            Type::Bool => Ok(Checked { max_cost: program.estimate().max, program }),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        }
    }

    /// Compiles the `messageExpression` of a rule; the error is Kubernetes' message.
    pub fn message(&self, rule: &Rule) -> Result<Option<Checked>, String> {
        if rule.message_expression.is_empty() {
            return Ok(None);
        }
        let program = self.env(rule).compile(&rule.message_expression);
        let program = program.map_err(|error| self.refusal(&error, "messageExpression "))?;
        match program.ty() {
            Type::String => Ok(Some(Checked { max_cost: program.estimate().max, program })),
            _ => Err("messageExpression must evaluate to a string".to_owned()),
        }
    }

    /// The message of a compile error. Type names are relative to the value of the rule.
    fn refusal(&self, error: &CompileError, of: &str) -> String {
        let problem = match error {
            CompileError::Issues(issues) => format!("{of}compilation failed: {issues}"),
            CompileError::Program(error) if of.is_empty() => format!("program instantiation failed: {error}"),
            CompileError::Program(error) => format!("{of}instantiation failed: {error}"),
        };
        problem.replace(&*self.type_name, SELF_TYPE)
    }

    fn compiled(&self, rule: &Rule, node: &Node) -> Compiled {
        let program = self.rule(rule).map(|checked| checked.program);
        let path = field_path::resolve(node, &rule.field_path, true).ok().map(|(path, _)| path);
        Compiled {
            uses_old_self: program.as_ref().is_ok_and(uses_old_self),
            program,
            message: self.message(rule).ok().flatten().map(|checked| checked.program),
            field_path: path.filter(|path| !path.is_empty()),
            source: rule.clone(),
        }
    }
}

/// Whether a rule uses `oldSelf`.
pub(super) fn uses_old_self(program: &Program) -> bool {
    program.uses(OLD_SELF)
}
