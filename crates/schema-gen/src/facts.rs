//! Facts that no dependency states: pointers, fields that Go always writes, Go's names of string types, enum
//! values.
//!
//! `facts.txt` has the notation of the table. A field line there replaces the marks of its field and
//! everything else that it states. A type that the dependencies lack is copied as it stands. `enum` lists the
//! values of a string type.

use std::collections::BTreeMap;

#[derive(Default)]
pub struct Facts {
    /// By package alias and type name.
    pub types: BTreeMap<(String, String), TypeFacts>,
    /// OpenAPI name prefixes of packages that no dependency has, by alias.
    pub packages: BTreeMap<String, String>,
    enums: BTreeMap<(String, String), String>,
}

#[derive(Default)]
pub struct TypeFacts {
    /// The words after the name: group and version, and flags.
    pub words: Vec<String>,
    pub fields: BTreeMap<String, FieldFacts>,
}

pub struct FieldFacts {
    pub marks: String,
    /// The shape and the words after it.
    pub words: Vec<String>,
}

impl Facts {
    /// The notation of a string type, from a field in package `alias`: its Go name and its enum values.
    pub fn string(&self, alias: &str, text: &str) -> String {
        let (package, name) = text.rsplit_once('.').unwrap_or((alias, text));
        let go = package.rsplit('/').next().unwrap_or(package);
        match self.enums.get(&(package.to_owned(), name.to_owned())) {
            Some(values) => format!("string:{go}.{name}({values})"),
            None => format!("string:{go}.{name}"),
        }
    }
}

/// Parses `facts.txt`.
pub fn read(text: &str) -> Result<Facts, String> {
    let mut facts = Facts::default();
    let mut alias = String::new();
    let mut open = None;
    for (number, line) in (1..).zip(text.lines()) {
        let at = |problem: &str| format!("facts.txt, line {number}: {problem}");
        let mut words = line.split_whitespace().map(str::to_owned);
        let Some(first) = words.next().filter(|first| !first.starts_with('#')) else { continue };
        let rest: Vec<String> = words.collect();
        match (line.starts_with(' '), first.as_str(), &rest[..]) {
            (true, ..) => {
                let key = open.clone().ok_or_else(|| at("a field without a type"))?;
                let of: &mut TypeFacts = facts.types.entry(key).or_default();
                let (name, marks) = first.split_at(first.trim_end_matches(['!', '+', '-', '?']).len());
                of.fields.insert(name.to_owned(), FieldFacts { marks: marks.to_owned(), words: rest });
            }
            (false, "package", [name, prefix @ ..]) => {
                alias.clone_from(name);
                if let Some(prefix) = prefix.first() {
                    facts.packages.insert(name.clone(), prefix.clone());
                }
            }
            (false, "enum", [name, values]) => {
                facts.enums.insert((alias.clone(), name.clone()), values.clone());
            }
            (false, name, _) => {
                let key = (alias.clone(), name.to_owned());
                facts.types.entry(key.clone()).or_default().words = rest;
                open = Some(key);
            }
        }
    }
    Ok(facts)
}
