//! One run of a script against one server: produces requests, consumes responses, collects answers.

use std::collections::BTreeMap;

use kinds::{protobuf, schema};
use model::json;
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::mask::Masks;
use crate::script::{Case, SET, Script, UNSET};
use crate::wire;

/// The namespace of a script's objects.
pub const NAMESPACE: &str = "space";

/// An HTTP request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Empty for none.
    pub body: Vec<u8>,
    /// The number of response lines to read; `None` for all.
    pub lines: Option<usize>,
}

/// An HTTP response.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status code.
    pub code: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, or the requested number of its lines.
    pub body: Vec<u8>,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The objects that a script needs before it starts. A controller may have created the service account
/// already.
pub fn preparation() -> Vec<Request> {
    let post = |path: &str, body: &Value| Request {
        method: "POST",
        path: path.to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: body.to_string().into_bytes(),
        lines: None,
    };
    // Without a mounted token, so that pods stay as they were sent.
    let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    let mut change = post(&format!("{accounts}/default"), &account);
    (change.method, change.headers[0].1) = ("PATCH", media_type("merge-patch"));
    vec![
        post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})),
        post(&accounts, &account),
        change,
    ]
}

/// The number of times that a request with `until` is repeated.
const REPETITIONS: usize = 1200;

/// A script in progress.
pub struct Run<'a> {
    script: &'a Script,
    next: usize,
    /// The number of repetitions of the current request.
    repeated: usize,
    variables: BTreeMap<String, Value>,
    bodies: BTreeMap<String, Value>,
    masks: Masks,
    answers: Answers,
}

impl<'a> Run<'a> {
    /// Starts a run; `source` is the text of the script.
    pub fn new(script: &'a Script, source: &str, now: jiff::Timestamp) -> Self {
        let variables = script.variables.iter().map(|(name, text)| (name.clone(), text.as_str().into()));
        Self {
            script,
            next: 0,
            repeated: 0,
            variables: variables.collect(),
            bodies: script.bodies.clone(),
            masks: Masks::new(source, now),
            answers: Answers::new(),
        }
    }

    /// The next request; `None` at the end of the script.
    ///
    /// # Errors
    /// A defect of the script.
    pub fn request(&self) -> Option<Result<Request, String>> {
        let case = self.script.cases.get(self.next)?;
        Some(self.build(case).map_err(|problem| format!("{}: {problem}", case.case)))
    }

    /// Whether the last request is repeated, because its answer lacks the awaited values.
    pub fn waits(&self) -> bool {
        self.repeated > 0
    }

    /// Processes the response to the last request.
    ///
    /// # Errors
    /// When a variable cannot be read from it.
    pub fn respond(&mut self, response: &Response) -> Result<(), String> {
        let Some(case) = self.script.cases.get(self.next) else { return Ok(()) };
        let mut answer = read(case, response);
        let stands = |(at, wanted): (&String, &Value)| {
            let mut wanted = wanted.clone();
            self.fill_value(&mut wanted);
            match (answer.pointer(at), wanted.as_str()) {
                (found, Some(UNSET)) => found.is_none(),
                (found, Some(SET)) => found.is_some(),
                (found, _) => found == Some(&wanted),
            }
        };
        if !case.until.iter().all(stands) {
            self.repeated += 1;
            let patience = if self.repeated < REPETITIONS { Ok(()) } else { Err(format!("{answer}")) };
            return patience
                .map_err(|last| format!("{}: waits in vain; the last answer was {last}", case.case));
        }
        (self.next, self.repeated) = (self.next + 1, 0);
        if let Some(body) = answer.get("body") {
            self.bodies.insert(case.case.clone(), body.clone());
        }
        for (name, pointer) in &case.keep {
            let value = answer.pointer(&format!("/body{pointer}"));
            let value = value.ok_or_else(|| {
                format!("{}: nothing to keep at {pointer} of the answer {answer}", case.case)
            })?;
            self.masks.keep(name, value);
            self.variables.insert(name.clone(), value.clone());
        }
        for pointer in &case.forget {
            set(&mut answer, pointer, &UNSET.into())?;
        }
        self.masks.apply(&mut answer);
        if is_protobuf(response) && answer.get("body").is_some() {
            answer[wire::RAW] = wire::raw(&response.body);
        }
        self.answers.insert(case.case.clone(), answer);
        Ok(())
    }

    /// All answers, masked.
    pub fn finish(self) -> Answers {
        self.answers
    }

    fn build(&self, case: &Case) -> Result<Request, String> {
        let (method, path) = case.request_line()?;
        let mut headers: Vec<(String, String)> =
            case.headers.iter().map(|(key, value)| (key.to_lowercase(), self.fill(value))).collect();
        headers.extend(case.user.iter().map(|user| ("impersonate-user".to_owned(), self.fill(user))));
        headers.extend(case.groups.iter().map(|group| ("impersonate-group".to_owned(), group.clone())));
        if let Some(accept) = &case.accept {
            headers.push(("accept".to_owned(), accepted(accept)));
        }
        let body = self.body(case)?;
        let media_type = case.media_type.as_deref().map(media_type);
        if body.is_some() || media_type.is_some() {
            let media_type = media_type.unwrap_or_else(|| "application/json".to_owned());
            headers.push(("content-type".to_owned(), media_type));
        }
        let (path, body) = (self.fill(path), body.unwrap_or_default());
        Ok(Request { method, path, headers, body, lines: case.events })
    }

    fn body(&self, case: &Case) -> Result<Option<Vec<u8>>, String> {
        if let Some(text) = &case.text {
            return Ok(Some(self.fill(text).into_bytes()));
        }
        let mut value = match (&case.body, &case.like) {
            (Some(body), None) => body.clone(),
            (None, Some(name)) => self.bodies.get(name).ok_or(format!("there is no body {name:?}"))?.clone(),
            (None, None) if case.set.is_empty() => return Ok(None),
            _ => return Err("a body is one of `body`, `like` and `text`".to_owned()),
        };
        for (pointer, new) in &case.set {
            set(&mut value, pointer, new)?;
        }
        self.fill_value(&mut value);
        Ok(Some(match case.media_type.as_deref() {
            Some("yaml") => json::to_yaml(&value).map_err(|error| error.to_string())?.into_bytes(),
            Some("protobuf") => {
                protobuf::encode(schema::builtin(), &value).map_err(|error| error.to_string())?
            }
            _ => value.to_string().into_bytes(),
        }))
    }

    /// Replaces variables by their values; unknown names stay.
    fn fill(&self, text: &str) -> String {
        let mut parts = text.split('$');
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let length = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len());
            match self.variables.get(&part[..length]) {
                Some(Value::String(value)) => out.push_str(value),
                Some(value) => out.push_str(&value.to_string()),
                None => {
                    out.push('$');
                    out.push_str(&part[..length]);
                }
            }
            out.push_str(&part[length..]);
        }
        out
    }

    fn fill_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let whole = text.strip_prefix('$').and_then(|name| self.variables.get(name));
                *value = whole.cloned().unwrap_or_else(|| self.fill(text).into());
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.fill_value(field)),
            _ => {}
        }
    }
}

/// The value of the Accept header for a short name.
fn accepted(name: &str) -> String {
    let view = |kind: &str| format!("application/json;as={kind};v=v1;g=meta.k8s.io");
    match name {
        "table" => view("Table"),
        "metadata" => view("PartialObjectMetadata"),
        "metadata-list" => view("PartialObjectMetadataList"),
        "discovery" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList".to_owned(),
        other => media_type(other),
    }
}

/// The Content-Type for a short name.
fn media_type(name: &str) -> String {
    match name {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "protobuf" => "application/vnd.kubernetes.protobuf",
        "json-patch" => "application/json-patch+json",
        "merge-patch" => "application/merge-patch+json",
        "strategic-patch" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        other => other,
    }
    .to_owned()
}

/// Sets the value at a JSON pointer and creates missing parents.
fn set(root: &mut Value, pointer: &str, new: &Value) -> Result<(), String> {
    let Some(path) = pointer.strip_prefix('/') else {
        return Err(format!("invalid JSON pointer {pointer:?}"));
    };
    let mut segments: Vec<String> =
        path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let last = segments.pop().unwrap_or_default();
    let lost = || format!("{pointer} leads nowhere");
    let mut at = root;
    for segment in segments {
        at = match at {
            Value::Array(items) => {
                let index: usize = segment.parse().map_err(|_| lost())?;
                items.get_mut(index).ok_or_else(lost)?
            }
            Value::Object(fields) => fields.entry(segment).or_insert_with(|| json!({})),
            _ => return Err(lost()),
        };
    }
    let unset = new.as_str() == Some(UNSET);
    match at {
        Value::Object(fields) if unset => {
            fields.remove(&last);
        }
        Value::Object(fields) => {
            fields.insert(last, new.clone());
        }
        Value::Array(items) if last == "-" => items.push(new.clone()),
        Value::Array(items) => {
            let index: usize = last.parse().map_err(|_| lost())?;
            if unset && index < items.len() {
                items.remove(index);
            } else {
                *items.get_mut(index).ok_or_else(lost)? = new.clone();
            }
        }
        _ => return Err(lost()),
    }
    Ok(())
}

/// The headers that are compared, with the value that most answers have.
const HEADERS: [(&str, Option<&str>); 6] = [
    ("content-type", Some("application/json")),
    ("cache-control", Some("no-cache, private")),
    ("warning", None),
    ("retry-after", None),
    ("vary", None),
    ("location", None),
];

fn is_protobuf(response: &Response) -> bool {
    let media_type = response.header("content-type").unwrap_or("");
    media_type.split(';').next() == Some("application/vnd.kubernetes.protobuf")
}

/// A response as JSON: code, headers with unusual values, and the decoded body.
fn read(case: &Case, response: &Response) -> Value {
    let mut answer = json!({"code": response.code});
    for (name, usual) in HEADERS {
        let values = response.headers.iter().filter(|(key, _)| key == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        match (values.as_slice(), usual) {
            ([value], Some(usual)) if *value == usual => {}
            ([], None) => {}
            ([], Some(_)) => answer["headers"][name] = Value::Null,
            ([value], _) => answer["headers"][name] = (*value).into(),
            (values, _) => answer["headers"][name] = json!(values),
        }
    }
    if response.body.is_empty() {
        return answer;
    }
    if case.events.is_some() && response.code == 200 {
        let lines = response.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        answer["events"] = lines.map(text_or_json).collect();
        return answer;
    }
    let media_type = response.header("content-type").unwrap_or("");
    let body = match media_type.split(';').next().unwrap_or("") {
        "application/json" => serde_json::from_slice(&response.body).ok(),
        "application/yaml" => json::parse_yaml(&response.body).ok().map(|parsed| parsed.value),
        "application/vnd.kubernetes.protobuf" => {
            protobuf::decode(schema::builtin(), &response.body, protobuf::TypeMeta::UNKNOWN)
                .ok()
                .map(|decoded| decoded.value)
        }
        _ => None,
    };
    match body {
        Some(body) => answer["body"] = body,
        None => answer["text"] = String::from_utf8_lossy(&response.body).into(),
    }
    answer
}

fn text_or_json(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_else(|_| String::from_utf8_lossy(line).into())
}
