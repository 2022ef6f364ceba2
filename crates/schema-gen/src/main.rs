//! Generates `crates/kinds/schema/kubernetes-1.35.txt` from the dependencies; `cargo xtask schema` runs it.

mod facts;
mod join;
mod openapi;
mod protobuf;
mod sources;
#[cfg(test)]
mod tests;

use std::{fs, path::Path, process::ExitCode};

const HELP: &str = "Usage: schema-gen [--check]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => run(false),
        ["--check"] => run(true),
        _ => Err(HELP.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("schema-gen: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(is_check: bool) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kinds/schema/kubernetes-1.35.txt");
    let sources = sources::find()?;
    let definitions = openapi::read(&sources::parse_all(&sources.k8s_openapi.join("v1_35"))?)?;
    let messages = protobuf::read(&sources::parse_all(&sources.k8s_pb)?)?;
    let facts = facts::read(include_str!("../facts.txt"))?;
    let table = include_str!("../notation.txt").to_owned() + &join::table(&definitions, &messages, &facts)?;
    if !is_check {
        return fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()));
    }
    let old = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if old == table {
        return Ok(());
    }
    let line = (1..).zip(old.lines().zip(table.lines())).find(|(_, (old, new))| old != new);
    let line = line.map(|(number, (old, new))| format!("; line {number} is {old:?}, but should be {new:?}"));
    Err(format!(
        "the table is not what the dependencies say{}: run cargo xtask schema",
        line.unwrap_or_default()
    ))
}
