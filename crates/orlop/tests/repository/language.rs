//! Plain technical English: openings of doc comments and log messages, named parameters, CRDs by their name.
//!
//! `language.txt` lists the files that still break a rule, with the number of their offences. The list only
//! shrinks: a new offence fails, and so does an entry that is too large. `SHRINK=1 cargo test -p orlop --test
//! repository language` lowers its numbers to those of the sources.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{
    sources::{Source, report, root, rust_files},
    syntax::{code, functions, is_tuple, log_messages},
};

/// The file of exceptions, from the root: a line has a rule, a number of offences and a path.
const EXCEPTIONS: &str = "crates/orlop/tests/repository/language.txt";

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

/// The exceptions: the number of offences of a rule that a file may have.
fn exceptions() -> BTreeMap<(String, String), usize> {
    let text = fs::read_to_string(root().join(EXCEPTIONS)).unwrap_or_default();
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let (rule, count, path) = (words.next()?, words.next()?, words.next()?);
        Some(((rule.to_owned(), path.to_owned()), count.parse().ok()?))
    };
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| entry(line).unwrap_or_else(|| panic!("{EXCEPTIONS}: {line}"))).collect()
}

/// Writes the exceptions with numbers that are no larger than those of the sources.
fn shrink(listed: &BTreeMap<(String, String), usize>, found: &BTreeMap<(String, String), Vec<String>>) {
    let text = fs::read_to_string(root().join(EXCEPTIONS)).unwrap_or_default();
    let mut lines: Vec<String> =
        text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
    for ((rule, path), count) in listed {
        let offences = found.get(&(rule.clone(), path.clone())).map_or(0, Vec::len);
        if offences.min(*count) > 0 {
            lines.push(format!("{rule} {} {path}", offences.min(*count)));
        }
    }
    fs::write(root().join(EXCEPTIONS), lines.join("\n") + "\n").expect("the list can be written");
}

#[test]
fn the_language_is_plain() {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for source in rust_files() {
        for rule in &RULES {
            let offences = (rule.offences)(&source);
            if !offences.is_empty() {
                found.insert((rule.name.to_owned(), source.path.display().to_string()), offences);
            }
        }
    }
    if std::env::var_os("SHRINK").is_some() {
        shrink(&exceptions(), &found);
    }
    let listed = exceptions();
    let mut all = Vec::new();
    for rule in &RULES {
        let mut offences = Vec::new();
        for ((_, path), texts) in found.iter().filter(|((name, _), _)| name == rule.name) {
            let allowed = listed.get(&(rule.name.to_owned(), path.clone())).copied().unwrap_or_default();
            if texts.len() > allowed {
                offences.push(format!("{path}: {} where {allowed} are listed: {texts:#?}", texts.len()));
            }
        }
        for ((_, path), count) in listed.iter().filter(|((name, _), _)| name == rule.name) {
            let texts = found.get(&(rule.name.to_owned(), path.clone())).map_or(0, Vec::len);
            if texts < *count {
                offences.push(format!(
                    "{EXCEPTIONS}: {} {count} {path}: lower it to {texts} (SHRINK=1 does)",
                    rule.name
                ));
            }
        }
        all.extend(
            offences.into_iter().map(|offence| format!("[{}: {}] {offence}", rule.name, rule.meaning)),
        );
    }
    let unknown = listed.keys().filter(|(name, _)| RULES.iter().all(|rule| rule.name != name));
    all.extend(unknown.map(|(name, _)| format!("{EXCEPTIONS}: there is no rule {name}")));
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
