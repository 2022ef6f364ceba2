//! The published conformance cases: nested suites of tests.

use serde_json::{Value as Json, json};

/// A case.
pub struct Case {
    /// The names of its suites, and its own.
    pub name: String,
    pub expr: String,
    /// The types of variables.
    pub variables: Vec<(String, Json)>,
    /// The values of variables.
    pub bindings: Vec<(String, Json)>,
    /// The expected value.
    pub value: Json,
    /// The expected type, in the notation of the reference implementation.
    pub ty: Option<String>,
    pub is_error: bool,
    pub is_check_only: bool,
}

impl Case {
    /// Whether it is about protobuf messages or enums, which Kubernetes' objects are not.
    pub fn is_about_messages(&self) -> bool {
        let suites = ["proto2/", "proto3/", "proto2_ext/", "enums/", "wrappers/"];
        let words = ["TestAllTypes", "google.protobuf.", "GlobalEnum", "NullValue", "@type"];
        let values = || self.bindings.iter().chain(&self.variables).map(|(_, json)| json);
        suites.iter().any(|suite| self.name.starts_with(suite))
            || words.iter().any(|word| self.expr.contains(word))
            || values()
                .any(|json| json.to_string().contains("messageType") || json.to_string().contains("@type"))
    }
}

/// All cases below a suite.
pub fn read(suite: &Json) -> Vec<Case> {
    let mut cases = Vec::new();
    for inner in items(&suite["suites"]) {
        collect(inner, "", &mut cases);
    }
    cases
}

fn items(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn collect(suite: &Json, above: &str, cases: &mut Vec<Case>) {
    let name = format!("{above}{}/", suite["name"].as_str().unwrap_or_default());
    for inner in items(&suite["suites"]) {
        collect(inner, &name, cases);
    }
    cases.extend(items(&suite["tests"]).map(|test| case(test, &name)));
}

fn case(test: &Json, suite: &str) -> Case {
    let original = &test["original"];
    let text = |key: &str| original[key].as_str().unwrap_or_default();
    let variables = items(&original["typeEnv"]).map(|declared| {
        (declared["name"].as_str().unwrap_or_default().to_owned(), declared["ident"]["type"].clone())
    });
    let bindings = original["bindings"].as_object().into_iter().flatten();
    let typed = &original["typedResult"];
    let value = match (&original["value"], &typed["result"]) {
        (Json::Null, Json::Null) => json!({"boolValue": true}),
        (Json::Null, value) | (value, _) => value.clone(),
    };
    Case {
        name: format!("{suite}{}", text("name").replace(' ', "_")),
        expr: text("expr").to_owned(),
        variables: variables.collect(),
        bindings: bindings.map(|(name, bound)| (name.clone(), bound["value"].clone())).collect(),
        value,
        ty: test["type"].as_str().map(str::to_owned),
        is_error: original.get("evalError").is_some(),
        is_check_only: original["checkOnly"] == true,
    }
}
