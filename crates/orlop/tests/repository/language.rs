//! Plain technical English: openings of doc comments and log messages, named parameters, CRDs by their name.

use std::path::Path;

use crate::{
    sources::{Source, report, rust_files},
    syntax::{code, functions, is_tuple, log_messages},
};

/// First words of a doc comment that hide its subject in a relative clause.
const OPENINGS: [&str; 8] = ["What", "Who", "Whoever", "Whom", "Whose", "How", "Where", "That"];

/// First words of a log message that do the same.
const LOG_OPENINGS: [&str; 6] = ["who", "what", "that", "whoever", "whom", "whose"];

/// A rule with the offences of one file, each with a text that helps to find it.
struct Rule {
    name: &'static str,
    meaning: &'static str,
    offences: fn(&Source) -> Vec<String>,
}

const RULES: [Rule; 4] = [
    Rule {
        name: "doc-opening",
        meaning: "a doc comment begins with its subject, not with a relative clause (What, Who, How, Where, That)",
        offences: doc_openings,
    },
    Rule {
        name: "log-message",
        meaning: "a log message is there, begins in lower case and names its subject",
        offences: log_openings,
    },
    Rule {
        name: "tuple-parameter",
        meaning: "no parameter of a function is a tuple: a struct names its parts",
        offences: tuple_parameters,
    },
    Rule {
        name: "crd-module",
        meaning: "a module about CustomResourceDefinitions is called crd, not definition",
        offences: definition_modules,
    },
];

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

/// The first lines of doc comments that open badly.
fn doc_openings(source: &Source) -> Vec<String> {
    let doc = |line: &str| {
        let line = line.trim_start();
        ["//! ", "/// "].iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned)
    };
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let mut above = false;
    let mut offences = Vec::new();
    for line in source.text.lines() {
        let opens = doc(line).filter(|_| !above);
        offences.extend(opens.filter(|text| OPENINGS.contains(&first_word(text))));
        above = is_comment(line);
    }
    offences
}

/// The log messages that open badly. Names that begin with several capitals, such as CRD or TLS, are fine.
fn log_openings(source: &Source) -> Vec<String> {
    let is_bad = |message: &str| {
        let mut characters = message.chars();
        let is_sentence = characters.next().is_some_and(char::is_uppercase)
            && characters.next().is_none_or(|second| !second.is_uppercase());
        message.is_empty() || is_sentence || LOG_OPENINGS.contains(&first_word(message))
    };
    let messages = log_messages(&source.text, &code(&source.text)).into_iter();
    messages.filter(|message| is_bad(message)).map(|message| format!("\"{message}\"")).collect()
}

/// The functions with a parameter that is a tuple. Conversions from a tuple are the exception.
fn tuple_parameters(source: &Source) -> Vec<String> {
    let code = code(&source.text);
    let functions = functions(&code).into_iter().filter(|function| function.name != "from");
    let with_tuple = functions.filter(|function| function.parameters.iter().any(|text| is_tuple(text)));
    with_tuple.map(|function| format!("fn {}", function.name)).collect()
}

/// The file itself, if its name or its folder's says "definition" for a CRD.
fn definition_modules(source: &Source) -> Vec<String> {
    let is_definition = |part: &str| {
        let mut words = part.trim_end_matches(".rs").split('_');
        let has = words.any(|word| matches!(word, "definition" | "definitions"));
        has && !part.contains("resource_definition")
    };
    let parts = source.path.components().map(|part| part.as_os_str().to_string_lossy());
    parts.filter(|part| is_definition(part)).take(1).map(|part| part.into_owned()).collect()
}

#[test]
fn the_language_is_plain() {
    let sources = rust_files();
    let mut all = Vec::new();
    for Rule { name, meaning, offences } in &RULES {
        for source in &sources {
            let found = offences(source).into_iter();
            all.extend(found.map(|text| format!("{}: {text} [{name}: {meaning}]", source.path.display())));
        }
    }
    report("the language is not plain", &all);
}

#[test]
fn offences_are_recognised() {
    let source = |path: &str, text: &str| Source { path: Path::new(path).to_owned(), text: text.to_owned() };
    let text = concat!(
        "//",
        "! What it is.\n\n/",
        "// The first.\n/",
        "// What it is.\n/",
        "// Who asks.\nfn f() {}\n"
    );
    assert_eq!(doc_openings(&source("a.rs", text)), ["What it is."]);
    let text =
        concat!("info", "!(\"Done\"); info", "!(\"CRD stored\"); info", "!(\"that it is\"); info", "!(x)");
    assert_eq!(log_openings(&source("a.rs", text)), ["\"Done\"", "\"that it is\"", "\"\""]);
    for (path, is_bad) in [
        ("crates/a/src/definitions/mod.rs", true),
        ("crates/a/src/definition.rs", true),
        ("crates/a/src/custom_resource_definition.rs", false),
        ("crates/a/src/crd.rs", false),
    ] {
        assert_eq!(!definition_modules(&source(path, "")).is_empty(), is_bad, "{path}");
    }
}
