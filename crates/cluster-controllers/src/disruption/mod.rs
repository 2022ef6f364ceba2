//! How many Pods of a PodDisruptionBudget may be taken away: the status that evictions look at.

mod decide;
mod execute;
#[cfg(test)]
mod tests;
mod view;

pub(super) use execute::controller;
