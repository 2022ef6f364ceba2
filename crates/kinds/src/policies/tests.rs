//! Evaluation of policies.

use std::sync::Arc;

use cel::library::authorizer::{Authorizer, Check, Decision, ResourceCheck};
use model::Object;
use serde_json::{Value, json};

use super::{
    Binding, Caller, Conditions, Criteria, Denial, Input, Judgement, MatchAttributes, Matched,
    MatchedResource, MutatingPolicy, MutationResult, RequestFacts, Resource, ValidatingPolicy, Verdict,
    apply_operations, request_value,
};

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

/// Allows `get` alone.
#[derive(Debug)]
struct OnlyGet;

impl Authorizer for OnlyGet {
    fn decide(&self, check: &Check) -> Decision {
        let is_allowed = matches!(check, Check::Resource(check) if check.verb == "get");
        Decision { is_allowed, ..Decision::default() }
    }

    fn for_service_account(&self, _: &str, _: &str) -> Arc<dyn Authorizer> {
        Arc::new(OnlyGet)
    }
}

fn facts(extra: &Object) -> RequestFacts<'_> {
    let resource = Resource { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
    RequestFacts {
        kind: resource,
        resource,
        requested_kind: resource,
        requested: resource,
        subresource: "",
        name: "a",
        namespace: "space",
        operation: "CREATE",
        caller: Caller { name: "me", uid: "", groups: &[], extra },
        is_dry_run: false,
        options: None,
    }
}

fn policy(spec: Value) -> ValidatingPolicy {
    ValidatingPolicy::compile(&object(json!({"metadata": {"name": "p"}, "spec": spec})))
}

fn judge_with(policy: &ValidatingPolicy, params: Option<&Object>) -> Verdict {
    let extra = Object::new();
    let written = object(json!({"metadata": {"name": "a"}, "data": {"n": "1"}}));
    let namespace = object(json!({"metadata": {"name": "space", "labels": {"a": "b"}}}));
    let authorizer: Arc<dyn Authorizer> = Arc::new(OnlyGet);
    policy.judge(&Input {
        object: Some(&written),
        old_object: None,
        request: &request_value(&facts(&extra)),
        namespace: Some(&namespace),
        params,
        authorizer: &authorizer,
        resource_check: &ResourceCheck { resource: "configmaps".to_owned(), ..ResourceCheck::default() },
    })
}

fn messages(spec: Value) -> Vec<String> {
    judge_with(&policy(spec), None).denials.into_iter().map(|denial| denial.message).collect()
}

/// The messages of a policy with one validation.
fn messages_of(expression: &str) -> Vec<String> {
    messages(json!({"validations": [{"expression": expression}]}))
}

#[test]
fn expressions_see_the_request() {
    for holds in [
        "object.data.n == '1'",
        "oldObject == null",
        "request.operation == 'CREATE' && request.userInfo.username == 'me'",
        "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
        "!has(request.subResource) && request.namespace == 'space'",
        "namespaceObject.metadata.labels['a'] == 'b'",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "!authorizer.requestResource.check('delete').allowed()",
    ] {
        assert_eq!(messages_of(holds), Vec::<String>::new(), "{holds}");
    }
}

#[test]
fn a_failed_validation_has_a_message() {
    let with = |more: Value| {
        let mut validation = json!({"expression": " object.data.n == '2' "});
        validation.as_object_mut().unwrap().extend(object(more));
        messages(json!({"validations": [validation]}))
    };
    assert_eq!(with(json!({})), ["failed expression: object.data.n == '2'"]);
    assert_eq!(with(json!({"message": " said "})), ["said"]);
    assert_eq!(with(json!({"message": "said", "messageExpression": "'n is ' + object.data.n"})), ["n is 1"]);
    for useless in ["' '", "'a\\nb'", "object.none", "string(object.data.m)"] {
        assert_eq!(with(json!({"message": "said", "messageExpression": useless})), ["said"], "{useless}");
    }
    assert_eq!(
        messages_of("object.data.m == '2'"),
        ["expression 'object.data.m == '2'' resulted in error: no such key: m"]
    );
    let spec = json!({"failurePolicy": "Ignore", "validations": [{"expression": "object.data.m == '2'"}]});
    assert_eq!(messages(spec), Vec::<String>::new());
}

#[test]
fn variables_are_computed_lazily_and_once() {
    let spec = |validation: &str| {
        json!({
            "variables": [
                {"name": "n", "expression": "int(object.data.n)"},
                {"name": "twice", "expression": "variables.n * 2"},
                {"name": "broken", "expression": "object.none"},
            ],
            "validations": [{"expression": validation}],
        })
    };
    assert_eq!(messages(spec("variables.twice == 2 && variables.n == 1")), Vec::<String>::new());
    assert_eq!(messages(spec("variables.n == 1 || variables.broken")), Vec::<String>::new());
    assert_eq!(
        messages(spec("variables.broken == 1")),
        ["expression 'variables.broken == 1' resulted in error: \
          composited variable \"broken\" fails to evaluate: no such key: none"]
    );
}

#[test]
fn long_chains_of_variables_do_not_overflow_the_stack() {
    let link = |index: usize| match index {
        0 => json!({"name": "v0", "expression": "1"}),
        _ => json!({"name": format!("v{index}"), "expression": format!("variables.v{} + 1", index - 1)}),
    };
    let variables: Vec<Value> = (0..3000).map(link).collect();
    let spec = json!({"variables": variables, "validations": [{"expression": "variables.v2999 == 3000"}]});
    assert_eq!(messages(spec), Vec::<String>::new());
    let variables = json!([
        {"name": "a", "expression": "1"}, {"name": "a", "expression": "variables.a + 1"}]);
    let spec = json!({"variables": variables, "validations": [{"expression": "variables.a == 2"}]});
    assert_eq!(messages(spec).len(), 1, "a variable that stands on itself is an error");
}

#[test]
fn costs_are_limited() {
    let expensive = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, \
                     [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, f >= 0))))))";
    assert_eq!(
        messages_of(expensive),
        [format!(
            "expression '{expensive}' resulted in error: operation cancelled: actual cost limit exceeded"
        )]
    );
    let many = vec![json!({"expression": expensive}); 11];
    assert_eq!(
        messages(json!({"validations": many})),
        ["validation failed due to running out of cost budget, no further validation rules will be run"]
    );
}

#[test]
fn match_conditions_decide_whether_a_policy_applies() {
    let spec = |conditions: &[&str], policy: &str| {
        let conditions: Vec<Value> =
            conditions.iter().map(|source| json!({"name": source, "expression": source})).collect();
        json!({"matchConditions": conditions, "failurePolicy": policy, "validations": [{"expression": "false"}]})
    };
    assert_eq!(messages(spec(&["true", "object.data.n == '1'"], "Fail")).len(), 1);
    assert!(messages(spec(&["false"], "Fail")).is_empty());
    assert!(messages(spec(&["object.none == 1", "false"], "Fail")).is_empty());
    assert_eq!(
        messages(spec(&["object.none == 1", "object.no == 1"], "Fail")),
        ["[expression 'object.none == 1' resulted in error: no such key: none, \
          expression 'object.no == 1' resulted in error: no such key: no]"]
    );
    assert!(messages(spec(&["object.none == 1"], "Ignore")).is_empty());
    let webhook = object(json!({"matchConditions": [{"name": "a", "expression": "object == null"}]}));
    assert!(!Conditions::of_webhook(&webhook).is_empty());
}

#[test]
fn parameters_and_audit_annotations_are_evaluated() {
    let policy = policy(json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params == null || params.data.max == '2'", "reason": "Forbidden"}],
        "auditAnnotations": [
            {"key": "max", "valueExpression": "params == null ? '' : 'max ' + params.data.max"},
            {"key": "who", "valueExpression": "string(authorizer == authorizer)"}],
    }));
    let params = object(json!({"data": {"max": "3"}}));
    let verdict = judge_with(&policy, Some(&params));
    let denial = Denial {
        index: 0,
        message: "failed expression: params == null || params.data.max == '2'".to_owned(),
        reason: Some("Forbidden".to_owned()),
    };
    assert_eq!(verdict.denials, [denial]);
    assert_eq!(verdict.annotations, [("max".to_owned(), "max 3".to_owned())]);
    assert_eq!(verdict.failures.len(), 1, "what is noted may not ask who may do what");
    assert!(judge_with(&policy, None).denials.is_empty());
}

#[test]
fn bindings_select_the_actions() {
    let policy = policy(json!({"validations": [{"expression": "false", "message": "no"}]}));
    let binding = |actions: Value| {
        Binding::read(&object(json!({
            "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": actions}})))
    };
    let judged = |actions: Value| {
        let mut judgement = Judgement::default();
        judgement.add(&policy, &binding(actions), judge_with(&policy, None));
        judgement.finish()
    };
    let refusal = judged(json!(["Deny"])).refusal.unwrap();
    assert_eq!(refusal.message, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no");
    assert_eq!((refusal.reason, refusal.code), ("Invalid", 422));
    let warned = judged(json!(["Warn", "Audit"]));
    assert_eq!(warned.refusal, None);
    assert_eq!(warned.warnings, ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"]);
    assert_eq!(warned.annotations.len(), 1);
    let mut judgement = Judgement::default();
    judgement.unusable(&policy, None, "why");
    let message = judgement.refusal.unwrap().message;
    assert_eq!(message, "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: why");
}

#[test]
fn rules_match_requests() {
    let resource = |group, version, plural| MatchedResource { group, version, plural };
    let equivalents = [resource("apps", "v1", "deployments"), resource("apps", "v1beta1", "deployments")];
    let target = MatchAttributes {
        resource: equivalents[0],
        equivalents: &equivalents,
        subresource: "",
        namespace: "space",
        name: "a",
        operation: "CREATE",
    };
    let matched = |change: Value, policy: &str| {
        let mut rule = object(json!({
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}));
        rule.extend(object(change));
        Criteria::read(&object(json!({"resourceRules": [rule], "matchPolicy": policy}))).rules(&target)
    };
    assert_eq!(matched(json!({}), "Exact"), Matched::Named);
    assert_eq!(matched(json!({"resources": ["*"]}), "Exact"), Matched::Named);
    assert_eq!(matched(json!({"resources": ["deployments/status"]}), "Exact"), Matched::No);
    assert_eq!(matched(json!({"resources": ["*/*"]}), "Exact"), Matched::Named);
    assert_eq!(matched(json!({"operations": ["UPDATE"]}), "Exact"), Matched::No);
    assert_eq!(matched(json!({"scope": "Cluster"}), "Exact"), Matched::No);
    assert_eq!(matched(json!({"resourceNames": ["b"]}), "Equivalent"), Matched::No);
    assert_eq!(matched(json!({"apiVersions": ["v1beta1"]}), "Exact"), Matched::No);
    assert_eq!(matched(json!({"apiVersions": ["v1beta1"]}), "Equivalent"), Matched::Equivalent(1));
    let excluding = json!({"excludeResourceRules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]});
    assert_eq!(Criteria::read(&object(excluding)).rules(&target), Matched::No);
    let selecting = Criteria::read(&object(json!({
        "namespaceSelector": {"matchLabels": {"a": "b"}},
        "objectSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}})));
    assert!(selecting.selects_namespaces());
    assert!(selecting.selects_namespace(Some(&object(json!({"a": "b"})))));
    assert!(!selecting.selects_namespace(None));
    let labelled = object(json!({"metadata": {"labels": {"x": ""}}}));
    assert!(selecting.selects_object(None, Some(&labelled)));
    assert!(!selecting.selects_object(Some(&Object::new()), None));
}

fn changed(mutation: Value, written: &Value) -> Result<MutationResult, String> {
    let policy = MutatingPolicy::compile(&object(json!({
        "metadata": {"name": "m"},
        "spec": {"variables": [{"name": "n", "expression": "object.spec.replicas + 1"}], "mutations": [mutation]}})));
    assert_eq!(policy.changes(), 1);
    let extra = Object::new();
    let authorizer: Arc<dyn Authorizer> = Arc::new(OnlyGet);
    let input = Input {
        object: written.as_object(),
        old_object: None,
        request: &request_value(&facts(&extra)),
        namespace: None,
        params: None,
        authorizer: &authorizer,
        resource_check: &ResourceCheck::default(),
    };
    assert_eq!(policy.is_about(&input), Ok(true));
    policy.change(0, &input)
}

#[test]
fn expressions_return_apply_configurations() {
    let apply = |source: &str| {
        let mutation =
            json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": source}});
        changed(mutation, &json!({"spec": {"replicas": 1}}))
    };
    assert_eq!(
        apply(
            "Object{spec: Object.spec{replicas: variables.n, template: Object.spec.template{spec: \
               Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'a'}]}}}}"
        ),
        Ok(MutationResult::Configuration(object(json!({
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a"}]}}}}))))
    );
    assert_eq!(
        apply("Object{metadata: Object.metadata{labels: {'a': 'b'}, ?annotations: optional.none()}}"),
        Ok(MutationResult::Configuration(object(json!({"metadata": {"labels": {"a": "b"}}}))))
    );
    assert_eq!(
        apply("Object{spec: Object.wrong{}}"),
        Err("type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field \
             name path from root Object type"
            .to_owned())
    );
    assert!(
        apply("{'spec': 1}").unwrap_err().starts_with("must evaluate to Object but got map(string, int)")
    );
    assert_eq!(
        apply("Object{spec: object.none}"),
        Err("expression 'Object{spec: object.none}' resulted in error: no such key: none".to_owned())
    );
}

#[test]
fn expressions_return_json_patches() {
    let written = json!({"spec": {"replicas": 1}});
    let patch = |source: &str| {
        let mutation = json!({"patchType": "JSONPatch", "jsonPatch": {"expression": source}});
        let MutationResult::Operations(operations) = changed(mutation, &written)? else {
            panic!("is a patch")
        };
        apply_operations(&written, &operations)
    };
    assert_eq!(
        patch(
            "[JSONPatch{op: 'replace', path: '/spec/replicas', value: variables.n}, JSONPatch{op: 'add', path: \
               '/labels', value: {}}, JSONPatch{op: 'add', path: '/labels/' + jsonpatch.escapeKey('a/b'), value: 'x'}]"
        ),
        Ok(Some(json!({"spec": {"replicas": 2}, "labels": {"a/b": "x"}})))
    );
    assert_eq!(
        patch("[JSONPatch{op: 'add', path: '/spec', value: Object.spec{replicas: 3}}]"),
        Ok(Some(json!({"spec": {"replicas": 3}})))
    );
    let tested =
        "[JSONPatch{op: 'test', path: '/spec/replicas', value: 5}, JSONPatch{op: 'remove', path: '/spec'}]";
    assert_eq!(patch(tested), Ok(None));
    assert_eq!(
        patch("[JSONPatch{op: 'remove', path: '/none/at/all'}]"),
        Err("JSON Patch: remove operation does not apply: doc is missing path: \"/none/at/all\": missing value"
            .to_owned())
    );
    assert!(patch("[JSONPatch{op: 1}]").is_err());
    assert!(patch("[1]").unwrap_err().contains("must evaluate to list(JSONPatch) but got list(int)"));
}
