//! The disruption controller: computes the status of PodDisruptionBudgets, which evictions check.

mod decide;
mod execute;
#[cfg(test)]
mod tests;
mod view;

pub(super) use execute::controller;
