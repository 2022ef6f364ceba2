//! The processing of a Pod between the wire and the store, and access decisions, on one core.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use kinds::Writer;
use kinds::pod_security::{Level, Standard, Version, violations};
use kinds::policies::{Authorizer, Check, Decision, Input, ResourceCheck, ValidatingPolicy};
use kinds::protobuf::{self, Encoder, TypeMeta};
use kinds::rbac::{Caller, Index, RequestAttributes, Verdict};
use kinds::schema::{self, check};
use kinds::validation::validate_object_meta;
use model::{Encoded, Object, Revision, json};
use serde_json::{Value, json};

use crate::figure::{Figure, Goal, Unit, show};
use crate::objects::{pod_json, pod_protobuf};
use crate::report::{Engine, Outcome, Report};
use crate::stats::Latencies;

const IN_PROCESS: Engine = Engine { name: "in process", busy: "bench" };
const FROM_JSON: &str = "model decode and validate a pod, JSON";
const FROM_PROTOBUF: &str = "model decode and validate a pod, protobuf";
const TO_PROTOBUF: &str = "model write a stored pod as protobuf";
const POD_SECURITY: &str = "model judge a pod by the restricted standard";
const POLICY: &str = "model judge a pod by a policy";
const DECISION: &str = "rbac decision among 10,000 rules";
const POD: TypeMeta<'static> = TypeMeta::new("v1", "Pod");

/// Repetitions per round.
const TIMES: usize = 2_000;

/// Runs all measures: decoding from both encodings, encoding, and access decisions.
pub async fn run(report: &mut Report) {
    let rounds = report.sizes.rounds;
    report.measure(FROM_JSON, IN_PROCESS, async { from_json(TIMES * rounds) }).await;
    report.measure(FROM_PROTOBUF, IN_PROCESS, async { from_protobuf(TIMES * rounds) }).await;
    report.measure(POD_SECURITY, IN_PROCESS, async { pod_security(TIMES * rounds) }).await;
    report.measure(POLICY, IN_PROCESS, async { policy(TIMES * rounds) }).await;
    report.measure(TO_PROTOBUF, IN_PROCESS, async { to_protobuf(TIMES * rounds) }).await;
    report.measure(DECISION, IN_PROCESS, async { decisions(TIMES * rounds) }).await;
}

fn from_json(times: usize) -> Result<Outcome> {
    let body = pod_json("some-pod");
    let type_id = schema::builtin().by_kind("", POD.api_version, POD.kind).context("pods have a schema")?;
    measured(times, body.len(), || {
        let mut value = json::parse(&body)?.value;
        check(schema::builtin(), type_id, &mut value)?;
        Ok(value)
    })
}

fn from_protobuf(times: usize) -> Result<Outcome> {
    let body = pod_protobuf("some-pod");
    measured(times, body.len(), || Ok(protobuf::decode(schema::builtin(), &body, POD)?.value))
}

fn to_protobuf(times: usize) -> Result<Outcome> {
    let decoded = protobuf::decode(schema::builtin(), &pod_protobuf("some-pod"), POD)?;
    let stored = accepted(decoded.value)?.at(Revision(1));
    let mut encoder = Encoder::new(schema::builtin());
    let (mut times_taken, mut out) = (Latencies::default(), Vec::new());
    for _ in 0..times {
        out.clear();
        let started = Instant::now();
        encoder.object(POD, black_box(&stored), &mut out)?;
        times_taken.push(started.elapsed());
    }
    let size = show(stored.len() as f64, Unit::Bytes);
    Ok(Outcome::of(Figure::time(times_taken.median()).with(format!("of {size}"))).goal(Goal::Below(20e-6)))
}

fn measured(times: usize, size: usize, decode: impl Fn() -> Result<Value>) -> Result<Outcome> {
    let (mut all, mut decoding) = (Latencies::default(), Latencies::default());
    for _ in 0..times {
        let started = Instant::now();
        let value = decode()?;
        decoding.push(started.elapsed());
        black_box(accepted(value)?);
        all.push(started.elapsed());
    }
    let size = show(size as f64, Unit::Bytes);
    Ok(Outcome::of(Figure::time(all.median()).with(format!("of {size}")))
        .beside(Figure::time(decoding.median()), "decoding alone")
        .goal(Goal::Below(100e-6)))
}

fn pod() -> Result<Object> {
    let Value::Object(pod) = json::parse(&pod_json("some-pod"))?.value else {
        anyhow::bail!("a pod is an object")
    };
    Ok(pod)
}

/// The cost of the Pod Security admission plugin per pod.
fn pod_security(times: usize) -> Result<Outcome> {
    let (pod, mut all) = (pod()?, Latencies::default());
    let restricted = Standard { level: Level::Restricted, version: Version::Latest };
    for _ in 0..times {
        let started = Instant::now();
        black_box(violations(restricted, &pod));
        all.push(started.elapsed());
    }
    Ok(Outcome::of(Figure::time(all.median())).goal(Goal::Below(20e-6)))
}

/// The cost of one admission policy with a variable that checks every container.
fn policy(times: usize) -> Result<Outcome> {
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "variables": [{"name": "containers", "expression": "object.spec.containers"}],
        "validations": [{"expression": "variables.containers.all(c, c.image.size() > 0) && request.operation == 'CREATE'"}],
    }});
    let policy = ValidatingPolicy::compile(policy.as_object().context("a policy is an object")?);
    let (pod, mut all) = (pod()?, Latencies::default());
    let request = json!({"operation": "CREATE"});
    let authorizer: Arc<dyn Authorizer> = Arc::new(DenyAll);
    let input = Input {
        object: Some(&pod),
        old_object: None,
        request: request.as_object().context("a request is an object")?,
        namespace: None,
        params: None,
        authorizer: &authorizer,
        resource_check: &ResourceCheck::default(),
    };
    for _ in 0..times {
        let started = Instant::now();
        let verdict = black_box(policy.judge(&input));
        all.push(started.elapsed());
        ensure!(verdict.denials.is_empty(), "the pod is refused: {verdict:?}");
    }
    Ok(Outcome::of(Figure::time(all.median())).goal(Goal::Below(20e-6)))
}

/// An authorizer that denies everything.
#[derive(Debug)]
struct DenyAll;

impl Authorizer for DenyAll {
    fn decide(&self, _: &Check) -> Decision {
        Decision::default()
    }

    fn for_service_account(&self, _: &str, _: &str) -> Arc<dyn Authorizer> {
        Arc::new(Self)
    }
}

/// The processing of a new object: defaults, preparation, validation, and encoding for the store.
fn accepted(value: Value) -> Result<Encoded> {
    let rules = kinds::rules("", POD.kind).context("pods have rules")?;
    let Value::Object(mut object): Value = value else { anyhow::bail!("a pod is an object") };
    (rules.default)(&mut object);
    (rules.prepare_create)(&mut object);
    let writer =
        Writer { name: "bench", uid: "", groups: &[], extra: &BTreeMap::new(), now: "2026-01-01T00:00:00Z" };
    (rules.stamp)(&mut object, None, &writer);
    let errors = problems(rules, &object);
    ensure!(errors.is_empty(), "the pod is refused: {errors:?}");
    (rules.canonicalize)(&mut object);
    Ok(Encoded::new(&object))
}

fn problems(rules: &kinds::KindRules, object: &Object) -> Vec<model::error::FieldError> {
    let mut errors = validate_object_meta(object, true, rules.name);
    errors.extend((rules.validate_create)(object));
    errors
}

/// The number of RBAC rules, half of them the caller's.
const RULES: usize = 10_000;

/// Decisions for a caller whose last rule allows the request, and for a caller without a matching rule.
fn decisions(times: usize) -> Result<Outcome> {
    let mut index = Index::default();
    for number in 0..RULES {
        let kind = format!("things{number}");
        let rules = json!([{"verbs": ["get"], "apiGroups": ["example.com"], "resources": [kind]}]);
        let name = format!("role{number}");
        let subject = if number % 2 == 0 { "jane".to_owned() } else { format!("user{number}") };
        let binding = json!({
            "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": subject}, {"kind": "Group", "name": "everybody"}],
        });
        index.set_role("", &name, Some(serde_json::from_value(json!({"rules": rules}))?));
        index.set_binding("", &name, Some(serde_json::from_value(binding)?));
    }
    let groups = ["everybody".to_owned(), "system:authenticated".to_owned()];
    let (mut allowed, mut refused) = (Latencies::default(), Latencies::default());
    for _ in 0..times {
        for (verb, latencies) in [("get", &mut allowed), ("delete", &mut refused)] {
            let request = RequestAttributes::Resource {
                verb,
                group: "example.com",
                resource: "things9998",
                subresource: "",
                namespace: "default",
                name: "one",
            };
            let started = Instant::now();
            let verdict = black_box(index.decide(Caller { name: "jane", groups: &groups }, request));
            latencies.push(started.elapsed());
            ensure!(
                matches!(verdict, Verdict::Allowed(_)) == (verb == "get"),
                "a wrong decision: {verdict:?}"
            );
        }
    }
    Ok(Outcome::of(Figure::time(allowed.median()))
        .beside(Figure::time(refused.median()), "refusing")
        .goal(Goal::Below(20e-6)))
}
