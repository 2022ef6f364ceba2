//! Rules run over the defaults of their own schema, when a definition is written.

use serde_json::Value;

use super::compile::{has_rules, place};
use super::declare::{SELF_TYPE, declare};
use super::evaluate::{BUDGET, Given, Ratchet, Run, Verdict};
use crate::error::FieldError;
use crate::structural::at::At;
use crate::structural::node::Node;

/// What is left to spend on the defaults of one schema; nothing once it was too much.
pub struct Defaults {
    budget: Option<u64>,
}

impl Defaults {
    /// Nothing is spent yet.
    pub fn unspent() -> Self {
        Self { budget: Some(BUDGET) }
    }

    /// Whether there is nothing left, and nothing more to look at.
    pub fn are_exhausted(&self) -> bool {
        self.budget.is_none()
    }

    /// What the rules at and below a place say of its default: as one that stays, and as one that is new.
    pub fn check(&mut self, node: &Node, is_resource: bool, default: &Value, at: &At<'_>) -> Vec<FieldError> {
        let Some(budget) = self.budget.filter(|_| has_rules(node)) else { return Vec::new() };
        let Some(typed) = declare(node, is_resource, SELF_TYPE) else { return Vec::new() };
        let Some(place) = place(node, &typed) else { return Vec::new() };
        let run = |old: Option<&Value>| {
            let mut run = Run { budget, verdict: Verdict::default() };
            let given = (Given::Part(default), old.map(Given::Part));
            let step = run.place(&place, node, Some(at), given, Ratchet::default());
            (run.verdict.errors, step.is_ok().then_some(run.budget))
        };
        let (mut errors, mut rest) = run(Some(default));
        if errors.is_empty() {
            let (of_new, of_new_rest) = run(None);
            errors = of_new;
            rest = rest.min(of_new_rest);
        }
        self.budget = rest;
        errors
    }
}
