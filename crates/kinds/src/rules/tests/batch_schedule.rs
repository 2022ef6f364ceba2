//! Schedules of CronJobs.

use super::changes::{Rows, creates};

/// The base of the cases.
const PLAIN: &str = r#"{
    "metadata": {"name": "plain"},
    "spec": {
        "schedule": "*/5 * * * *",
        "jobTemplate": {
            "spec": {
                "template": {
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}
                }
            }
        }
    }
}"#;

const SCHEDULES: Rows = &[
    ("never", r#"{"/spec/schedule": ""}"#, &["spec.schedule: Required value"]),
    (
        "with spaces",
        r#"{"/spec/schedule": "   "}"#,
        &["spec.schedule: Invalid value: \"   \": expected exactly 5 fields, found 0: []"],
    ),
    (
        "with four fields",
        r#"{"/spec/schedule": "* * * *"}"#,
        &["spec.schedule: Invalid value: \"* * * *\": expected exactly 5 fields, found 4: [* * * *]"],
    ),
    (
        "with six fields",
        r#"{"/spec/schedule": "* * * * * *"}"#,
        &["spec.schedule: Invalid value: \"* * * * * *\": expected exactly 5 fields, found 6: [* * * * * \
             *]"],
    ),
    (
        "with a word",
        r#"{"/spec/schedule": "x * * * *"}"#,
        &["spec.schedule: Invalid value: \"x * * * *\": failed to parse int from x: strconv.Atoi: \
             parsing \"x\": invalid syntax"],
    ),
    (
        "too large",
        r#"{"/spec/schedule": "60 * * * *"}"#,
        &["spec.schedule: Invalid value: \"60 * * * *\": end of range (60) above maximum (59): 60"],
    ),
    (
        "too large an hour",
        r#"{"/spec/schedule": "0 24 * * *"}"#,
        &["spec.schedule: Invalid value: \"0 24 * * *\": end of range (24) above maximum (23): 24"],
    ),
    (
        "day zero",
        r#"{"/spec/schedule": "0 0 0 * *"}"#,
        &["spec.schedule: Invalid value: \"0 0 0 * *\": beginning of range (0) below minimum (1): 0"],
    ),
    (
        "month thirteen",
        r#"{"/spec/schedule": "0 0 1 13 *"}"#,
        &["spec.schedule: Invalid value: \"0 0 1 13 *\": end of range (13) above maximum (12): 13"],
    ),
    (
        "day of week seven",
        r#"{"/spec/schedule": "0 0 * * 7"}"#,
        &["spec.schedule: Invalid value: \"0 0 * * 7\": end of range (7) above maximum (6): 7"],
    ),
    ("names", r#"{"/spec/schedule": "0 0 ? jan-MAR,Dec sun-sat/2"}"#, &[]),
    (
        "an unknown name",
        r#"{"/spec/schedule": "0 0 * foo *"}"#,
        &["spec.schedule: Invalid value: \"0 0 * foo *\": failed to parse int from foo: strconv.Atoi: \
             parsing \"foo\": invalid syntax"],
    ),
    (
        "backwards",
        r#"{"/spec/schedule": "5-1 * * * *"}"#,
        &["spec.schedule: Invalid value: \"5-1 * * * *\": beginning of range (5) beyond end of range \
             (1): 5-1"],
    ),
    (
        "by zero",
        r#"{"/spec/schedule": "*/0 * * * *"}"#,
        &["spec.schedule: Invalid value: \"*/0 * * * *\": step of range should be a positive number: */0"],
    ),
    (
        "by a word",
        r#"{"/spec/schedule": "*/x * * * *"}"#,
        &["spec.schedule: Invalid value: \"*/x * * * *\": failed to parse int from x: strconv.Atoi: \
             parsing \"x\": invalid syntax"],
    ),
    (
        "by a negative number",
        r#"{"/spec/schedule": "*/-1 * * * *"}"#,
        &["spec.schedule: Invalid value: \"*/-1 * * * *\": negative number (-1) not allowed: -1"],
    ),
    (
        "two slashes",
        r#"{"/spec/schedule": "1/2/3 * * * *"}"#,
        &["spec.schedule: Invalid value: \"1/2/3 * * * *\": too many slashes: 1/2/3"],
    ),
    (
        "two hyphens",
        r#"{"/spec/schedule": "1-2-3 * * * *"}"#,
        &["spec.schedule: Invalid value: \"1-2-3 * * * *\": too many hyphens: 1-2-3"],
    ),
    (
        "a negative number",
        r#"{"/spec/schedule": "-1 * * * *"}"#,
        &["spec.schedule: Invalid value: \"-1 * * * *\": failed to parse int from : strconv.Atoi: \
             parsing \"\": invalid syntax"],
    ),
    ("a plus", r#"{"/spec/schedule": "+1 * * * *"}"#, &[]),
    ("lists", r#"{"/spec/schedule": "1,2,10-20/3,, 0 1 1 1"}"#, &[]),
    ("only a comma", r#"{"/spec/schedule": ", * * * *"}"#, &[]),
    ("a number with a step", r#"{"/spec/schedule": "5/15 * * * *"}"#, &[]),
    ("a star with a range", r#"{"/spec/schedule": "*-5 * * * *"}"#, &[]),
    (
        "a huge number",
        r#"{"/spec/schedule": "99999999999999999999 * * * *"}"#,
        &["spec.schedule: Invalid value: \"99999999999999999999 * * * *\": failed to parse int from \
             99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range"],
    ),
    ("tabs", r#"{"/spec/schedule": "0\t0 *  * *"}"#, &[]),
    ("yearly", r#"{"/spec/schedule": "@yearly"}"#, &[]),
    ("annually", r#"{"/spec/schedule": "@annually"}"#, &[]),
    ("hourly", r#"{"/spec/schedule": "@hourly"}"#, &[]),
    ("midnight", r#"{"/spec/schedule": "@midnight"}"#, &[]),
    (
        "reboot",
        r#"{"/spec/schedule": "@reboot"}"#,
        &["spec.schedule: Invalid value: \"@reboot\": unrecognized descriptor: @reboot"],
    ),
    (
        "in capitals",
        r#"{"/spec/schedule": "@Daily"}"#,
        &["spec.schedule: Invalid value: \"@Daily\": unrecognized descriptor: @Daily"],
    ),
    ("every", r#"{"/spec/schedule": "@every 1h30m"}"#, &[]),
    (
        "every part of a second",
        r#"{"/spec/schedule": "@every 1.5s300ms-"}"#,
        &["spec.schedule: Invalid value: \"@every 1.5s300ms-\": failed to parse duration @every \
             1.5s300ms-: time: unknown unit \"ms-\" in duration \"1.5s300ms-\""],
    ),
    (
        "every nothing",
        r#"{"/spec/schedule": "@every "}"#,
        &["spec.schedule: Invalid value: \"@every \": failed to parse duration @every : time: invalid \
             duration \"\""],
    ),
    (
        "every without unit",
        r#"{"/spec/schedule": "@every 5"}"#,
        &["spec.schedule: Invalid value: \"@every 5\": failed to parse duration @every 5: time: missing \
             unit in duration \"5\""],
    ),
    (
        "every unknown unit",
        r#"{"/spec/schedule": "@every 5x"}"#,
        &["spec.schedule: Invalid value: \"@every 5x\": failed to parse duration @every 5x: time: \
             unknown unit \"x\" in duration \"5x\""],
    ),
    ("every negative", r#"{"/spec/schedule": "@every -5m"}"#, &[]),
];

#[test]
fn cron_schedules_are_validated() {
    creates("CronJob", PLAIN, SCHEDULES);
}
