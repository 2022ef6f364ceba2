//! YAML bodies: the same values as from JSON.

use serde::de::DeserializeSeed;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Options, alias_limits, budget, options, with_deserializer_from_str_with_options};

use serde_json::Value;

use super::repeated::repeated_keys;
use super::{JsonError, Notes, Parsed, parse};

/// Ten times the largest body; far less than a few aliases could ask for.
const MAX_BYTES: usize = 32 << 20;

/// Deeper than any manifest. The parser takes up to 20 KiB of stack for each level in a build without optimisation.
const MAX_LEVELS: usize = 64;

/// Parses one YAML document; an empty one is null. Plain `yes`, `no`, `on` and `off` are booleans, as in YAML
/// 1.1. Duplicate keys are reported by a sentence each, as in `line 4: key "a" already set in map`.
///
/// JSON, which most clients send in YAML bodies, is parsed by [`parse`], which is faster.
pub fn parse_yaml(bytes: &[u8]) -> Result<Parsed, JsonError> {
    if bytes.trim_ascii_start().starts_with(b"{")
        && let Ok(parsed) = parse(bytes)
        && parsed.duplicates.is_empty()
    {
        return Ok(parsed);
    }
    let text = first_document(std::str::from_utf8(bytes).map_err(JsonError::not_utf8)?);
    let mut parsed = document(text)?;
    parsed.duplicates = repeated_keys(text);
    Ok(parsed)
}

/// The error of a strict decoder about duplicate keys: all of them in one.
pub fn repeated_keys_error(keys: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", keys.join("\n  "))
}

/// The first document of a stream; Kubernetes reads no further.
fn first_document(text: &str) -> &str {
    let mut end = 0;
    let mut begun = false;
    for line in text.split_inclusive('\n') {
        let is_marker = line.trim_end() == "---" || line.starts_with("--- ");
        if is_marker && begun {
            return &text[..end];
        }
        begun |= is_marker || !(line.trim().is_empty() || line.starts_with(['#', '%']));
        end += line.len();
    }
    text
}

/// Writes a value as a YAML document, with its keys sorted.
pub fn to_yaml(value: &Value) -> Result<String, JsonError> {
    serde_saphyr::to_string(value).map_err(|error| JsonError { message: format!("yaml: {error}") })
}

fn document(text: &str) -> Result<Parsed, JsonError> {
    let mut notes = Notes::new(MAX_BYTES, MAX_LEVELS);
    let value = with_deserializer_from_str_with_options(text, limits(), |deserializer| {
        notes.deserialize(deserializer)
    })
    .map_err(|error| JsonError { message: format!("yaml: {error}") })?;
    Ok(notes.finish(value))
}

fn limits() -> Options {
    options! {
        budget: budget! { max_depth: MAX_LEVELS, max_documents: 1 },
        alias_limits: alias_limits! { max_total_replayed_events: 100_000 },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}
