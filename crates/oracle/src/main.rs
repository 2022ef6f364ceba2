//! The recorder: plays scripts against a real kube-apiserver and records its answers.

mod curl;
mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use oracle::{AuditEvents, Fixture, Hooks, NAMESPACE, Request, Response, Run, Script, ServerSettings};
use serde_json::Value;

use curl::Curl;
use reference::ReferenceServer;

const NAMESPACES: &str = "/api/v1/namespaces/";

/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(100);
/// The number of attempts until a namespace is gone.
const PAUSES: usize = 1200;

/// The server to ask and the scripts to play.
#[derive(Default)]
struct Arguments<'a> {
    filter: &'a str,
    server: Option<&'a str>,
    token: Option<&'a str>,
    assets: Option<&'a str>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["record", rest @ ..] => parse(rest).and_then(|arguments| record(&arguments)),
        _ => Err("usage: record [FILTER] --assets DIR | --server URL --token TOKEN".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("oracle: {message}");
            ExitCode::FAILURE
        }
    }
}

fn record(arguments: &Arguments<'_>) -> Result<(), String> {
    let fixtures = oracle::fixtures(arguments.filter).map_err(|error| error.to_string())?;
    if fixtures.is_empty() {
        return Err(format!("no script name contains {:?}", arguments.filter));
    }
    // Scripts with special server settings need a server of their own.
    let mut by_server: BTreeMap<ServerSettings, Vec<&Fixture>> = BTreeMap::new();
    for fixture in &fixtures {
        let script = fixture.read()?.0;
        by_server.entry(script.setting()).or_default().push(fixture);
    }
    let mut failed = Vec::new();
    for (setting, fixtures) in by_server {
        let start = |folder| ReferenceServer::start(Path::new(folder), &setting);
        let reference = arguments.assets.map(start).transpose()?;
        let server = match (&reference, arguments.server) {
            (Some(reference), None) => Curl::new(&reference.url, &reference.token),
            (None, Some(url)) => Curl::new(url, arguments.token.ok_or("--server needs --token")?),
            _ => return Err("give a server: either --assets or --server".to_owned()),
        };
        for fixture in fixtures {
            let events = reference.as_ref().and_then(|reference| reference.events.as_ref());
            match record_script(&server, events, fixture) {
                Ok(cases) => println!("{:<48} {cases:>4} cases", fixture.name),
                Err(error) => failed.push(format!("{}: {error}", fixture.name)),
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn parse<'a>(arguments: &[&'a str]) -> Result<Arguments<'a>, String> {
    let mut parsed = Arguments::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let place = match *argument {
            "--server" => &mut parsed.server,
            "--token" => &mut parsed.token,
            "--assets" => &mut parsed.assets,
            filter if !filter.starts_with('-') && parsed.filter.is_empty() => {
                parsed.filter = filter;
                continue;
            }
            other => return Err(format!("unknown argument `{other}`")),
        };
        *place = Some(rest.next().ok_or_else(|| format!("{argument} needs a value"))?);
    }
    Ok(parsed)
}

/// Plays a script, writes its answers, and deletes the objects it created.
fn record_script(server: &Curl, events: Option<&AuditEvents>, fixture: &Fixture) -> Result<usize, String> {
    let (script, source) = fixture.read()?;
    let mut made = vec![format!("{NAMESPACES}{NAMESPACE}")];
    clean(server, &made, script.controllers)?;
    for request in oracle::preparation() {
        note(&mut made, &request, &server.send(&request)?);
    }
    let played = play(server, events, &script, &source, &mut made);
    clean(server, &made, script.controllers)?;
    let answers = played?;
    fs::write(&fixture.answers, oracle::write_answers(&script, &answers))
        .map_err(|error| error.to_string())?;
    Ok(answers.len())
}

fn play(
    server: &Curl,
    events: Option<&AuditEvents>,
    script: &Script,
    source: &str,
    made: &mut Vec<String>,
) -> Result<oracle::Answers, String> {
    let hooks = Hooks::start(&script.hooks)?;
    let mut run = Run::new(script, source, jiff::Timestamp::now());
    while let Some(request) = run.request() {
        let request = hooks.with_address(request?);
        let own = hooks.answer(&request).or_else(|| events?.answer(&request));
        let response = match own {
            Some(response) => response,
            None => hooks.without_address(server.send(&request)?),
        };
        note(made, &request, &response);
        run.respond(&response)?;
        if run.waits() {
            pause();
        }
    }
    Ok(run.finish())
}

#[expect(clippy::disallowed_methods, reason = "another server's state is asked for again, not waited for")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Records the path of a created object.
fn note(made: &mut Vec<String>, request: &Request, response: &Response) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if response.code != 201 || query.contains("dryRun") {
        return;
    }
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let name = body.pointer("/metadata/name").and_then(Value::as_str);
    made.push(match (request.method, name) {
        ("POST", Some(name)) => format!("{path}/{name}"),
        _ => path.to_owned(),
    });
}

/// Repeats a request until its object is not found.
fn wait_for_the_end(server: &Curl, request: &Request) -> Result<(), String> {
    for _ in 0..PAUSES {
        if server.send(request)?.code == 404 {
            return Ok(());
        }
        pause();
    }
    Err(format!("{} still exists", request.path))
}

/// Deletes the objects that a script created, newest first, and removes their finalizers. Controllers, if
/// any, empty namespaces.
fn clean(server: &Curl, made: &[String], controllers: bool) -> Result<(), String> {
    for path in made.iter().rev() {
        let request = |method, path: String, media_type: &str, body: &str| Request {
            method,
            path,
            headers: vec![("content-type".to_owned(), media_type.to_owned())],
            body: body.as_bytes().to_vec(),
            lines: None,
        };
        let gone =
            request("DELETE", format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background"), "", "");
        if server.send(&gone)?.code == 404 {
            continue;
        }
        let free = r#"{"metadata":{"finalizers":null}}"#;
        server.send(&request("PATCH", path.clone(), "application/merge-patch+json", free))?;
        match path.strip_prefix(NAMESPACES).filter(|rest| !rest.contains('/')) {
            Some(_) if controllers => wait_for_the_end(server, &request("GET", path.clone(), "", ""))?,
            Some(name) => {
                let last = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"finalizers":[]}}}}"#);
                server.send(&request("PUT", format!("{path}/finalize"), "application/json", &last))?;
            }
            None => {}
        }
    }
    Ok(())
}
