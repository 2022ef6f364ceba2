//! A custom resource type: four of the eight verbs, validation rules, a selectable field and table columns.

use std::borrow::Cow;
use std::sync::Arc;

use apiserver::registry::{Object, Strategy, TableRenderer};
use apiserver::{ResourceType, Verb, Verbs};
use jiff::Timestamp;
use model::error::FieldError;
use serde_json::{Value, json};

/// The resource type. Scores can be created and read, but not changed or deleted.
pub fn score_type() -> ResourceType {
    let mut score = ResourceType::new("games.example.com", "v1", "Score", "scores");
    score.short_names = vec!["sc".to_owned()];
    score.verbs = Verbs::of(&[Verb::Create, Verb::Get, Verb::List, Verb::Watch]);
    score.strategy = Arc::new(Rules);
    score.table = Arc::new(Board);
    score
}

/// Defaults and validation of scores.
struct Rules;

impl Strategy for Rules {
    fn prepare_create(&self, score: &mut Object) {
        let medal = match points(score) {
            Some(100..) => "gold",
            Some(50..) => "silver",
            _ => "none",
        };
        score.insert("medal".to_owned(), medal.into());
    }

    fn validate_create(&self, score: &Object) -> Vec<FieldError> {
        match points(score) {
            None => vec![FieldError::required("points", "a score needs points")],
            Some(points) if points < 0 => {
                vec![FieldError::invalid("points", points, "must be greater than or equal to 0")]
            }
            Some(_) => Vec::new(),
        }
    }

    fn selectable_fields(&self) -> &[Cow<'static, str>] {
        &[Cow::Borrowed("medal")]
    }
}

/// The columns of `kubectl get scores`.
struct Board;

impl TableRenderer for Board {
    fn columns(&self) -> Vec<Value> {
        let column = |name: &str, kind: &str, format: &str| json!({"name": name, "type": kind, "format": format, "description": name, "priority": 0});
        vec![column("Name", "string", "name"), column("Points", "integer", ""), column("Medal", "string", "")]
    }

    fn cells(&self, score: &Object, _now: Timestamp) -> Vec<Value> {
        let name = score.get("metadata").and_then(|metadata| metadata.get("name"));
        let cell = |value: Option<&Value>| value.cloned().unwrap_or(Value::Null);
        vec![cell(name), cell(score.get("points")), cell(score.get("medal"))]
    }
}

fn points(score: &Object) -> Option<i64> {
    score.get("points").and_then(Value::as_i64)
}
