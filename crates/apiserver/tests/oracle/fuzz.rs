//! Fuzzing: the requests of the scripts, mutated at random places. No response is a server failure, none hangs, and none
//! panics.
//!
//! `FUZZ_ROUNDS=100 FUZZ_SEED=7 cargo test -p apiserver --test oracle bent` is a long run with other places.

use oracle::{Request, Response, Run};
use serde_json::{Value, json};

use crate::server::Server;

/// Random numbers, reproducible by their seed.
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap() % sides.max(1)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }
}

/// Texts that have broken parsers before.
const NASTY: [&str; 20] = [
    "",
    " ",
    "\u{0}",
    "..",
    "%00",
    "%",
    "%ff%fe",
    "-1",
    "9223372036854775808",
    "1e999",
    "a=b,,c in (",
    "!a,b notin (c),d!=e,f>1",
    "=,=",
    "\u{202e}🚢",
    "{\"$patch\":\"delete\"}",
    "metadata.name=a,spec.nodeName!=b",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4ifQ",
    "2006-01-02T15:04:05.999999999+99:99",
    "999999999999999999999999999Ei",
    "true",
];

const PARAMETERS: [&str; 16] = [
    "fieldSelector",
    "labelSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
    "watch",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "propagationPolicy",
    "gracePeriodSeconds",
    "pretty",
];

const HEADERS: [(&str, &str); 16] = [
    ("accept", "application/vnd.kubernetes.protobuf"),
    ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,*/*;q=x"),
    ("accept", "application/apply-patch+yaml;;=,"),
    ("accept", "application/cbor"),
    ("accept-encoding", "gzip;q=0.x, *"),
    ("content-type", "application/vnd.kubernetes.protobuf"),
    ("content-type", "application/yaml"),
    ("content-type", "application/json-patch+json"),
    ("content-type", "application/merge-patch+json"),
    ("content-type", "application/strategic-merge-patch+json"),
    ("content-type", "application/apply-patch+yaml"),
    ("content-type", "; charset"),
    ("impersonate-user", "system:serviceaccount::"),
    ("impersonate-group", "system:masters"),
    ("user-agent", "\u{ff}/"),
];

/// Mutates a request in one or several places.
fn bend(request: &Request, dice: &mut Dice) -> Request {
    let mut bent = request.clone();
    for _ in 0..=dice.roll(2) {
        match dice.roll(8) {
            0 => bent.path = bend_path(&bent.path, dice),
            1 => bent.path = with_parameter(&bent.path, dice),
            2 => bend_header(&mut bent, dice),
            3 => bent.method = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"][dice.roll(6)],
            4 | 5 if !bent.body.is_empty() => bend_bytes(&mut bent.body, dice),
            _ => bend_document(&mut bent.body, dice),
        }
    }
    // The request may be a watch: its head is enough.
    bent.lines = Some(0);
    bent
}

fn bend_path(path: &str, dice: &mut Dice) -> String {
    let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
    let at = dice.roll(segments.len());
    match dice.roll(3) {
        0 => segments[at] = encoded(dice.pick(&NASTY)),
        1 => segments.insert(at, encoded(dice.pick(&NASTY))),
        _ => drop(segments.remove(at)),
    }
    format!("/{}", segments.join("/").trim_start_matches('/'))
}

fn with_parameter(path: &str, dice: &mut Dice) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{}={}", dice.pick(&PARAMETERS), encoded(dice.pick(&NASTY)))
}

/// Escapes only as much as a URI needs: invalid percent escapes are intended.
fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"%=.-_~!,".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

fn bend_header(request: &mut Request, dice: &mut Dice) {
    let (name, value) = HEADERS[dice.roll(HEADERS.len())];
    request.headers.retain(|(key, _)| key != name);
    request.headers.push((name.to_owned(), value.to_owned()));
}

fn bend_bytes(body: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.roll(body.len());
    match dice.roll(5) {
        0 => body.truncate(at),
        1 => body[at] ^= 1 << dice.roll(8),
        2 => body.splice(at..at, dice.pick(&NASTY).bytes()).for_each(drop),
        3 => {
            let end = at + dice.roll(body.len() - at);
            let part = body[at..end].to_vec();
            body.splice(at..at, part);
        }
        _ => body.splice(at..at, std::iter::repeat_n(b'[', 100_000)).for_each(drop),
    }
}

/// Mutates one value of a JSON document.
fn bend_document(body: &mut Vec<u8>, dice: &mut Dice) {
    let Ok(mut document) = serde_json::from_slice::<Value>(body) else { return };
    let mut value = &mut document;
    loop {
        let children = match &*value {
            Value::Object(map) => map.len(),
            Value::Array(list) => list.len(),
            _ => 0,
        };
        if children == 0 || dice.roll(4) == 0 {
            break;
        }
        let at = dice.roll(children);
        value = match value {
            Value::Object(map) => map.values_mut().nth(at).unwrap(),
            Value::Array(list) => &mut list[at],
            _ => unreachable!("it has children"),
        };
    }
    *value = match dice.roll(9) {
        0 => Value::Null,
        1 => json!([value.take()]),
        2 => json!({"": value.take()}),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(1.5e300),
        6 => json!({}),
        7 => json!([]),
        _ => json!(dice.pick(&NASTY)),
    };
    *body = document.to_string().into_bytes();
}

/// Kubernetes has codes above 499 for some bad requests, too; a failure has its reason, in every encoding.
fn is_failure(response: &Response) -> bool {
    let says = |reason: &str| response.body.windows(reason.len()).any(|part| part == reason.as_bytes());
    response.code >= 500 && (says("InternalError") || says("ServiceUnavailable"))
}

/// The one internal error of Kubernetes itself, as in `crd-serving/scales`: reading the scale of a custom object without
/// replicas.
fn is_recorded(request: &Request, response: &Response) -> bool {
    let message = br#"Internal error occurred: the spec replicas field \".spec.n\" does not exist"#;
    let is_read = request.method == "GET" && request.path.contains("/scale");
    is_read && response.code == 500 && response.body.windows(message.len()).any(|part| part == message)
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

#[tokio::test]
async fn bent_requests_are_answered() {
    let (seed, rounds) = (number("FUZZ_SEED", 1), number("FUZZ_ROUNDS", 1));
    let mut failures = Vec::new();
    for (index, fixture) in
        oracle::fixtures(&std::env::var("ORACLE").unwrap_or_default()).unwrap().iter().enumerate()
    {
        let mut dice = Dice((seed << 32) + u64::try_from(index).unwrap());
        let (script, source) = fixture.read().unwrap();
        // An unreachable webhook is a failure, and there are no controllers to wait for.
        if !script.hooks.is_empty() || script.controllers {
            continue;
        }
        let server = Server::start(&script.setting()).await;
        for request in oracle::preparation() {
            server.send(&request).await;
        }
        let mut run = Run::new(&script, &source, jiff::Timestamp::now());
        // A mutated request may undo state that the script needs: run as far as possible.
        while let Some(Ok(request)) = run.request() {
            for _ in 0..rounds {
                let bent = bend(&request, &mut dice);
                let Ok(response) = server.try_send(&bent).await else { continue };
                // The target of a proxy need not exist.
                let is_excused = bent.path.contains("/proxy") || is_recorded(&bent, &response);
                if is_failure(&response) && !is_excused {
                    let (asked, body) =
                        (String::from_utf8_lossy(&bent.body), String::from_utf8_lossy(&response.body));
                    let line = format!(
                        "{} {} {:?} {asked:.300}\n  {} {body}",
                        bent.method, bent.path, bent.headers, response.code
                    );
                    failures.push(format!("{}: {line}", fixture.name));
                }
            }
            let request = Request { lines: request.lines.map(|_| 0), ..request };
            let response = server.send(&request).await;
            if run.respond(&response).is_err() {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
