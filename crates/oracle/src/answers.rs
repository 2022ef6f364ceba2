//! Recorded answers, by case name, in a file beside the script.

use std::collections::BTreeMap;

use model::json::parse_yaml;
use serde_json::Value;

use crate::script::Script;
use crate::yaml;

/// Code, headers and body of each case.
pub type Answers = BTreeMap<String, Value>;

const HEADING: &str =
    "# What kube-apiserver answers. Not edited by hand: `cargo xtask oracle record` writes it.\n";

/// The order of an answer's fields in the file.
const ORDER: [&str; 6] = ["code", "headers", "body", "text", "events", "protobuf"];

/// Parses a file of answers.
///
/// # Errors
/// When the file is malformed.
pub fn read_answers(text: &str) -> Result<Answers, String> {
    let parsed = parse_yaml(text.as_bytes()).map_err(|error| error.to_string())?;
    serde_json::from_value(parsed.value).map_err(|error| error.to_string())
}

/// Formats a file of answers, in the order of the script.
pub fn write_answers(script: &Script, answers: &Answers) -> String {
    let mut out = HEADING.to_owned();
    for case in &script.cases {
        if let Some(answer) = answers.get(&case.case) {
            yaml::write_entry(&mut out, &case.case, answer, &ORDER);
        }
    }
    out
}
