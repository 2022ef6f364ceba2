//! CronJob.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{items, map_mut, set_default, text, value};
use serde_json::{Value, json};

use super::job::{bad_spec, default_patterns, spec_warnings};
use super::{schedule, time_zone};
use crate::rules::age::since;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::selection::{Selection, bad_selector};
use crate::rules::workload::{
    CONTAINERS, IMAGES, SELECTOR, container_cells, default_template, map_at, name_warning, negative, present,
    reset_status,
};
use crate::rules::{KindRules, Subresource};

const NAME_MAX: usize = 52;
const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];
const JOB_SPEC: [&str; 3] = ["spec", "jobTemplate", "spec"];

pub(super) const RULES: KindRules = KindRules {
    group: "batch",
    kind: "CronJob",
    default: |object| {
        let spec = map_mut(object, "spec");
        set_default(spec, "concurrencyPolicy", POLICIES[0]);
        spec.entry("suspend").or_insert_with(|| false.into());
        spec.entry("successfulJobsHistoryLimit").or_insert_with(|| 3.into());
        spec.entry("failedJobsHistoryLimit").or_insert_with(|| 1.into());
        let job = map_mut(map_mut(spec, "jobTemplate"), "spec");
        default_template(job);
        default_patterns(job);
    },
    prepare_create: |object| reset_status(object, json!({})),
    validate_create: |object| {
        let mut errors = validate(object, None);
        let name = text(object, &["metadata", "name"]);
        if name.len() > NAME_MAX {
            let detail = format!("must be no more than {NAME_MAX} characters");
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
        errors
    },
    validate_update: |new, old| validate(new, Some(old)),
    warnings: |new, old| {
        let mut warnings = Vec::new();
        if old.is_none() {
            warnings.extend(name_warning(new));
        }
        warnings.extend(spec_warnings(new, old, &JOB_SPEC));
        if old.is_some() && text(new, &["spec", "schedule"]).contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    },
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |_, _| Vec::new(),
    }],
    columns: &[
        NAME,
        Column::new("Schedule", "string", "The schedule in cron format."),
        Column::new("Timezone", "string", "The time zone of the schedule."),
        Column::new("Suspend", "boolean", "Whether the schedule is suspended."),
        Column::new("Active", "integer", "The number of running jobs."),
        Column::new("Last Schedule", "string", "The time since it last started a job."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells,
    ..KindRules::WITH_STATUS
};

fn validate(object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let mut errors = bad_schedule(spec, old);
    errors.extend(negative(spec, &Path::SPEC, &["startingDeadlineSeconds"]));
    let zone = |object| value(object, &["spec", "timeZone"]).and_then(Value::as_str);
    if let Some(zone) = zone(object).filter(|new| old.and_then(zone) != Some(new)) {
        errors.extend(time_zone::check(&Path::root("spec.timeZone"), zone));
    }
    match text(spec, &["concurrencyPolicy"]) {
        "" => errors.push(FieldError::required("spec.concurrencyPolicy", "")),
        policy if !POLICIES.contains(&policy) => {
            errors.push(FieldError::not_supported("spec.concurrencyPolicy", policy, &POLICIES));
        }
        _ => {}
    }
    errors.extend(map_at(object, &JOB_SPEC).map(bad_job).unwrap_or_default());
    errors.extend(negative(spec, &Path::SPEC, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]));
    errors
}

fn bad_schedule(spec: &Object, old: Option<&Object>) -> Vec<FieldError> {
    const PATH: &str = "spec.schedule";
    let text = text(spec, &["schedule"]);
    if text.is_empty() {
        return vec![FieldError::required(PATH, "")];
    }
    let mut errors: Vec<FieldError> = schedule::check(text)
        .err()
        .map(|problem| FieldError::invalid(PATH, text, problem))
        .into_iter()
        .collect();
    // Older versions of Kubernetes accepted schedules with a time zone.
    let had_zone = old.is_some_and(|old| model::object::text(old, &["spec", "schedule"]).contains("TZ"));
    let detail = match (had_zone, text.contains("TZ"), present(spec, &["timeZone"]).is_some()) {
        (true, true, true) => "cannot use both timeZone field and TZ or CRON_TZ in schedule",
        (false, true, _) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        _ => return errors,
    };
    errors.push(FieldError::invalid(PATH, text, detail));
    errors
}

fn bad_job(job: &Object) -> Vec<FieldError> {
    const PATH: &str = "spec.jobTemplate.spec";
    let mut errors = bad_spec(job, &Path::root(PATH));
    if let Some(selector) = present(job, &["selector"]) {
        let detail = "`selector` will be auto-generated";
        errors.push(bad_selector(&Path::root(PATH).field("selector"), Some(selector), detail));
    }
    if value(job, &["manualSelector"]) == Some(&Value::Bool(true)) {
        let path = format!("{PATH}.manualSelector");
        errors.push(FieldError::not_supported(path, true, &["nil", "false"]));
    }
    errors
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let or_none = |text: Option<String>| Value::from(text.unwrap_or_else(|| "<none>".to_owned()));
    let zone = value(object, &["spec", "timeZone"]).and_then(Value::as_str).map(str::to_owned);
    let suspend = match value(object, &["spec", "suspend"]) {
        Some(Value::Bool(true)) => "True",
        Some(Value::Bool(false)) => "False",
        _ => "<unset>",
    };
    let job = map_at(object, &JOB_SPEC);
    let [containers, images] = container_cells(job);
    vec![
        name(object),
        text(object, &["spec", "schedule"]).into(),
        or_none(zone),
        suspend.into(),
        items(object, &["status", "active"]).len().into(),
        or_none(since(text(object, &["status", "lastScheduleTime"]), now)),
        age(object, now),
        containers,
        images,
        Selection::shown(job.and_then(|job| present(job, &["selector"]))).into(),
    ]
}
