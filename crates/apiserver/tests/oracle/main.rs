//! Every recorded answer of a real kube-apiserver against the answer of this server.
//!
//! `ORACLE=configmap cargo test -p apiserver --test oracle` compares only the scripts whose name contains that text.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod fuzz;
mod server;

use std::collections::BTreeSet;
use std::fs;

use oracle::{AllowedDifferences, Answers, Fixture, Hooks, Run, Script, compare, read_answers};

use server::Server;

#[tokio::test]
async fn every_answer_is_that_of_kubernetes() {
    let filter = std::env::var("ORACLE").unwrap_or_default();
    let allowed = fs::read_to_string(oracle::allow_list()).unwrap();
    let allowed = AllowedDifferences::parse(&allowed).unwrap();
    let mut report = Vec::new();
    let mut cases = 0;
    for fixture in oracle::fixtures(&filter).unwrap() {
        let (script, expected) = read(&fixture);
        let found = play(&fixture, &script).await;
        cases += found.len();
        for case in &script.cases {
            let name = format!("{}: {}", fixture.name, case.case);
            let mut differences = compare(&expected[&case.case], &found[&case.case]);
            differences.retain(|difference| !allowed.allow(&name, difference));
            if !differences.is_empty() {
                let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
                report.push(format!("{name}\n{}", lines.join("\n")));
            }
        }
    }
    if filter.is_empty() {
        let stale = allowed.stale().into_iter();
        report.extend(
            stale.map(|entry| {
                format!("allowed.yaml: there is no difference at {} of {}", entry.at, entry.case)
            }),
        );
    }
    assert!(report.is_empty(), "{} of {cases} cases differ\n\n{}\n", report.len(), report.join("\n\n"));
}

/// A script with its answers, which must be those of the script as it is now.
fn read(fixture: &Fixture) -> (Script, Answers) {
    let text = |path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", fixture.name));
    let script = Script::parse(&text(&fixture.script)).unwrap_or_else(|e| panic!("{}: {e}", fixture.name));
    let answers = read_answers(&text(&fixture.answers)).unwrap_or_else(|e| panic!("{}: {e}", fixture.name));
    let names: BTreeSet<&String> = script.cases.iter().map(|case| &case.case).collect();
    assert!(names.into_iter().eq(answers.keys()), "{}: cargo xtask oracle record", fixture.name);
    (script, answers)
}

async fn play(fixture: &Fixture, script: &Script) -> Answers {
    let server = Server::start(script.serves.as_deref()).await;
    for request in oracle::preparation() {
        server.send(&request).await;
    }
    let source = fs::read_to_string(&fixture.script).unwrap();
    let hooks = Hooks::start(&script.hooks).unwrap();
    let mut run = Run::new(script, &source, jiff::Timestamp::now());
    while let Some(request) = run.request() {
        let request = hooks.outward(request.unwrap_or_else(|e| panic!("{}: {e}", fixture.name)));
        let response = match hooks.own(&request) {
            Some(response) => response,
            None => hooks.inward(server.send(&request).await),
        };
        run.respond(&response).unwrap_or_else(|e| panic!("{}: {e}", fixture.name));
        // Requests to a store in memory wait for nothing: what a script waits for gets its turn here.
        tokio::task::yield_now().await;
    }
    run.finish()
}
