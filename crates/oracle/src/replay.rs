//! Replay of scripts against Orlop, and the differences from the recorded answers.

use std::collections::BTreeSet;
use std::fs;

use crate::allowed::AllowedDifferences;
use crate::answers::{Answers, read_answers};
use crate::compare::compare;
use crate::files::{Fixture, allow_list, fixtures};
use crate::hooks::Hooks;
use crate::run::{Request, Response, Run, preparation};
use crate::script::Script;
use crate::wire;

/// The scripts to replay.
pub struct Replay<'a> {
    /// Selects scripts whose name contains this.
    pub filter: &'a str,
    /// Selects the scripts that need controllers, or the rest.
    pub controllers: bool,
}

impl Replay<'_> {
    /// Plays each script against its own server; `pause` lets the server work before a request is repeated.
    ///
    /// # Errors
    /// All differences that the list does not allow, and all list entries with a wrong number of cases.
    pub async fn run<Server>(
        &self,
        start: impl AsyncFn(&Script) -> Server,
        send: impl AsyncFn(&Server, &Request) -> Response,
        pause: impl AsyncFn(),
    ) -> Result<(), String> {
        let text = fs::read_to_string(allow_list()).map_err(|error| error.to_string())?;
        let allowed = AllowedDifferences::parse(&text)?;
        let (mut report, mut cases) = (Vec::new(), 0);
        for fixture in fixtures(self.filter).map_err(|error| error.to_string())? {
            let (script, source) = fixture.read()?;
            if script.controllers != self.controllers {
                continue;
            }
            let expected = recorded(&fixture, &script)?;
            let server = start(&script).await;
            let played = play(&script, &source, async |request| send(&server, request).await, &pause).await;
            cases += script.cases.len();
            match played {
                Ok(found) => report.extend(differences(&fixture, &script, &expected, &found, &allowed)),
                Err(problem) => report.push(format!("{}: {problem}", fixture.name)),
            }
        }
        if self.filter.is_empty() {
            let miscounted = allowed.miscounted(self.controllers).into_iter();
            report.extend(miscounted.map(|sentence| format!("allowed.yaml: {sentence}")));
        }
        if report.is_empty() {
            return Ok(());
        }
        Err(format!("{} of {cases} cases differ\n\n{}\n", report.len(), report.join("\n\n")))
    }
}

/// The recorded answers, which must be for the present cases of the script.
fn recorded(fixture: &Fixture, script: &Script) -> Result<Answers, String> {
    let named = |problem: &dyn std::fmt::Display| format!("{}: {problem}", fixture.name);
    let text = fs::read_to_string(&fixture.answers).map_err(|error| named(&error))?;
    let answers = read_answers(&text).map_err(|problem| named(&problem))?;
    let names: BTreeSet<&String> = script.cases.iter().map(|case| &case.case).collect();
    if names.into_iter().eq(answers.keys()) {
        Ok(answers)
    } else {
        Err(named(&"the recorded answers are for other cases: run cargo xtask oracle record"))
    }
}

async fn play(
    script: &Script,
    source: &str,
    send: impl AsyncFn(&Request) -> Response,
    pause: impl AsyncFn(),
) -> Result<Answers, String> {
    for request in preparation() {
        send(&request).await;
    }
    let hooks = Hooks::start(&script.hooks)?;
    let mut run = Run::new(script, source, jiff::Timestamp::now());
    while let Some(request) = run.request() {
        let request = hooks.with_address(request?);
        let response = match hooks.answer(&request) {
            Some(response) => response,
            None => hooks.without_address(send(&request).await),
        };
        run.respond(&response)?;
        if run.waits() {
            pause().await;
        }
    }
    Ok(run.finish())
}

/// The differences of a script that are not allowed, case by case.
fn differences(
    fixture: &Fixture,
    script: &Script,
    expected: &Answers,
    found: &Answers,
    allowed: &AllowedDifferences,
) -> Vec<String> {
    let of_case = |name: &String| {
        let case = format!("{}: {name}", fixture.name);
        let (mut expected, mut found) = (expected[name].clone(), found[name].clone());
        let unread = [("Kubernetes", wire::check(&mut expected)), ("Orlop", wire::check(&mut found))];
        let unread =
            unread.into_iter().filter_map(|(whose, problem)| Some(format!("    {whose}: {}", problem?)));
        let mut differences = compare(&expected, &found);
        differences.retain(|difference| !allowed.allow(&case, difference));
        let lines: Vec<String> = unread.chain(differences.iter().map(ToString::to_string)).collect();
        (!lines.is_empty()).then(|| format!("{case}\n{}", lines.join("\n")))
    };
    script.cases.iter().filter_map(|case| of_case(&case.case)).collect()
}
