//! The group `batch`.

mod cron_job;
mod indexes;
mod job;
mod schedule;
mod time_zone;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[cron_job::RULES, job::RULES];
