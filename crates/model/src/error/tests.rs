//! Statuses and messages, as recorded from kube-apiserver 1.35.

use super::*;

fn text(value: &str) -> String {
    value.to_owned()
}

/// Checks message, reason and code against the `Status`, and the details as a whole.
fn check(error: &Error, code: u16, reason: &str, message: &str, details: Option<Value>) {
    let mut expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    if let Some(details) = details {
        expected["details"] = details;
    }
    assert_eq!(error.status(), expected);
}

#[test]
fn errors_about_an_object_name_it() {
    let roles = || (text("rbac.authorization.k8s.io"), text("clusterroles"), text("x"));
    let details = json!({"name": "x", "group": "rbac.authorization.k8s.io", "kind": "clusterroles"});
    let (group, resource, name) = roles();
    check(
        &Error::NotFound { group, resource, name },
        404,
        "NotFound",
        "clusterroles.rbac.authorization.k8s.io \"x\" not found",
        Some(details.clone()),
    );
    let (group, resource, name) = roles();
    check(
        &Error::Conflict { group, resource, name, message: text("too late") },
        409,
        "Conflict",
        "Operation cannot be fulfilled on clusterroles.rbac.authorization.k8s.io \"x\": too late",
        Some(details),
    );
    check(
        &Error::AlreadyExists {
            group: text(""),
            resource: text("namespaces"),
            name: text("default"),
            is_ending: false,
        },
        409,
        "AlreadyExists",
        "namespaces \"default\" already exists",
        Some(json!({"name": "default", "kind": "namespaces"})),
    );
    check(
        &Error::GenerateNameConflict { group: text(""), resource: text("pods"), name: text("a-x") },
        409,
        "AlreadyExists",
        "pods \"a-x\" already exists, the server was not able to generate a unique name for the object",
        Some(json!({"name": "a-x", "kind": "pods", "retryAfterSeconds": 1})),
    );
}

#[test]
fn forbidden_has_three_forms() {
    let forbidden = |group: &str, resource: &str, name: &str| Error::Forbidden {
        group: text(group),
        resource: text(resource),
        name: text(name),
        message: text("no"),
    };
    let rows = [
        (forbidden("", "", ""), "forbidden: no", json!({})),
        (forbidden("", "namespaces", ""), "namespaces is forbidden: no", json!({"kind": "namespaces"})),
        (
            forbidden("apps", "deployments", "d"),
            "deployments.apps \"d\" is forbidden: no",
            json!({"name": "d", "group": "apps", "kind": "deployments"}),
        ),
    ];
    for (error, message, details) in rows {
        check(&error, 403, "Forbidden", message, Some(details));
    }
}

#[test]
fn a_terminating_namespace_is_a_cause() {
    let error = Error::NamespaceTerminating {
        group: text("coordination.k8s.io"),
        resource: text("leases"),
        name: text("a"),
        namespace: text("term"),
    };
    let message = "leases.coordination.k8s.io \"a\" is forbidden: unable to create new content in namespace term because it is \
                   being terminated";
    let cause = json!({
        "reason": "NamespaceTerminating",
        "message": "namespace term is being terminated",
        "field": "metadata.namespace",
    });
    let details = json!({"name": "a", "group": "coordination.k8s.io", "kind": "leases", "causes": [cause]});
    check(&error, 403, "Forbidden", message, Some(details));
}

#[test]
fn errors_about_the_request_have_details_only_where_kubernetes_has_them() {
    let types = || vec![text("application/json"), text("application/yaml")];
    check(&Error::bad_request("no sense"), 400, "BadRequest", "no sense", None);
    check(&Error::Unauthorized, 401, "Unauthorized", "Unauthorized", None);
    let message = "the server could not find the requested resource";
    check(&Error::PathNotFound, 404, "NotFound", message, Some(json!({})));
    let message = "only the following media types are accepted: application/json, application/yaml";
    check(&Error::NotAcceptable { accepted: types() }, 406, "NotAcceptable", message, None);
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json, application/yaml";
    check(&Error::UnsupportedMediaType { accepted: types() }, 415, "UnsupportedMediaType", message, None);
    let bare = Error::UnsupportedMediaType { accepted: vec![] };
    check(&bare, 415, "UnsupportedMediaType", "415: Unsupported Media Type", Some(json!({})));
    let message = "Request entity too large: limit is 3145728";
    check(&Error::TooLarge { limit: 3_145_728 }, 413, "RequestEntityTooLarge", message, None);
    let message = "Request entity too large: the object has 10001 labels";
    let error = Error::ObjectTooLarge { message: text("the object has 10001 labels") };
    check(&error, 413, "RequestEntityTooLarge", message, None);
    let message =
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    let error = Error::TooManyOperations { limit: 10_000, given: 10_001 };
    check(&error, 413, "RequestEntityTooLarge", message, None);
    check(&Error::Unavailable { message: text("later") }, 503, "ServiceUnavailable", "later", None);
    let details = json!({"causes": [{"message": "oops"}]});
    check(&Error::internal("oops"), 500, "InternalError", "Internal error occurred: oops", Some(details));
}

#[test]
fn a_method_is_refused_by_the_path_or_by_the_resource() {
    let refused = |group: &str, resource: &str| Error::MethodNotAllowed {
        group: text(group),
        resource: text(resource),
        verb: text("delete"),
    };
    let message = "the server does not allow this method on the requested resource";
    check(&refused("", ""), 405, "MethodNotAllowed", message, Some(json!({})));
    let message = "delete is not supported on resources of kind \"deployments.apps\"";
    let details = json!({"group": "apps", "kind": "deployments"});
    check(&refused("apps", "deployments"), 405, "MethodNotAllowed", message, Some(details));
}

#[test]
fn errors_about_time_say_when_to_try_again() {
    let error = Error::FutureRevision { requested: Revision(99_999_999), current: Revision(209) };
    let details = json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    });
    let message = "Timeout: Too large resource version: 99999999, current: 209";
    check(&error, 504, "Timeout", message, Some(details));
    assert_eq!(error.retry_after_seconds(), Some(1));

    let error = Error::Timeout { message: text("slow"), retry_after_seconds: 0 };
    check(&error, 504, "Timeout", "Timeout: slow", Some(json!({})));
    assert_eq!(error.retry_after_seconds(), None);

    let error = Error::TooManyRequests { message: text("calm"), retry_after_seconds: 10 };
    check(&error, 429, "TooManyRequests", "calm", Some(json!({"retryAfterSeconds": 10})));
}

#[test]
fn an_expired_list_may_carry_a_token_to_go_on() {
    let error = Error::Expired { message: text("old"), continue_token: None };
    check(&error, 410, "Expired", "old", None);
    let error = Error::Expired { message: text("old"), continue_token: Some(text("abc")) };
    assert_eq!(error.status()["metadata"], json!({"continue": "abc"}));
}

#[test]
fn an_invalid_object_has_one_cause_for_each_error() {
    let invalid =
        |errors| Error::Invalid { group: text("apps"), kind: text("Deployment"), name: text("d"), errors };
    let one = || FieldError::required("spec.selector", "");
    let two = || FieldError::invalid("spec.replicas", -1, "must be positive");
    let cause_one =
        json!({"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"});
    let cause_two = json!({
        "reason": "FieldValueInvalid", "message": "Invalid value: -1: must be positive", "field": "spec.replicas",
    });
    let details = |causes: &[&Value]| {
        let mut details = json!({"name": "d", "group": "apps", "kind": "Deployment"});
        if !causes.is_empty() {
            details["causes"] = json!(causes);
        }
        Some(details)
    };
    let subject = "Deployment.apps \"d\" is invalid";
    let first = "spec.selector: Required value";
    let second = "spec.replicas: Invalid value: -1: must be positive";
    let rows = [
        (vec![], subject.to_owned(), details(&[])),
        (vec![one()], format!("{subject}: {first}"), details(&[&cause_one])),
        (vec![one(), two()], format!("{subject}: [{first}, {second}]"), details(&[&cause_one, &cause_two])),
        // The message has each error once, the causes do not.
        (vec![one(), one()], format!("{subject}: {first}"), details(&[&cause_one, &cause_one])),
    ];
    for (errors, message, details) in rows {
        check(&invalid(errors), 422, "Invalid", &message, details);
    }
}

#[test]
fn a_patch_that_cannot_be_applied_is_invalid_without_a_kind() {
    let error = Error::Invalid { group: text(""), kind: text(""), name: text(""), errors: vec![] };
    let message = "the server rejected our request due to an error in our request";
    check(&error, 422, "Invalid", message, Some(json!({})));
    let errors = vec![FieldError::invalid("patch", "[]", "no")];
    let error = Error::Invalid { group: text(""), kind: text(""), name: text(""), errors };
    assert_eq!(error.to_string(), " \"\" is invalid: patch: Invalid value: \"[]\": no");
}

#[test]
fn field_errors_show_values_as_kubernetes_does() {
    let rows = [
        (FieldError::not_found("a", "b"), "a: Not found: \"b\""),
        (FieldError::required("a", "now"), "a: Required value: now"),
        (FieldError::duplicate("a[1]", json!({"x": "<"})), "a[1]: Duplicate value: {\"x\":\"\\u003c\"}"),
        (FieldError::invalid("a", "b\"\n", "no"), "a: Invalid value: \"b\\\"\\n\": no"),
        (FieldError::invalid("a", true, "no"), "a: Invalid value: true: no"),
        (FieldError::invalid("a", json!(null), ""), "a: Invalid value: null"),
        (FieldError::invalid("a", json!(["b", 1]), "no"), "a: Invalid value: [\"b\",1]: no"),
        (FieldError::invalid("a", 1.5, ""), "a: Invalid value: 1.5"),
        (FieldError::invalid("a", 2.0, ""), "a: Invalid value: 2"),
        (FieldError::invalid("a", 1e21, ""), "a: Invalid value: 1e+21"),
        (FieldError::invalid("a", 1_234_567.5, ""), "a: Invalid value: 1.2345675e+06"),
        (FieldError::invalid("a", 999_999.5, ""), "a: Invalid value: 999999.5"),
        (FieldError::invalid("a", -1.5e-7, ""), "a: Invalid value: -1.5e-07"),
        (FieldError::invalid("a", u64::MAX, ""), "a: Invalid value: 18446744073709551615"),
        (
            FieldError::not_supported("a", "b", &["c", "d"]),
            "a: Unsupported value: \"b\": supported values: \"c\", \"d\"",
        ),
        (FieldError::not_supported("a", "b", &[]), "a: Unsupported value: \"b\""),
        (FieldError::forbidden("a", "no"), "a: Forbidden: no"),
        (FieldError::too_long("a", 63), "a: Too long: may not be more than 63 bytes"),
        (FieldError::too_long("a", 1), "a: Too long: may not be more than 1 byte"),
        (FieldError::too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
        (FieldError::type_invalid("a", "b", "no"), "a: Invalid value: \"b\": no"),
        (FieldError::internal("a", "no"), "a: Internal error: no"),
        (FieldError { value: None, ..FieldError::invalid("a", "b", "no") }, "a: Invalid value: no"),
    ];
    for (error, message) in rows {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn texts_are_quoted_as_go_quotes_them() {
    let rows = [
        ("plain 'text'", "\"plain 'text'\""),
        ("\\ \t\x07\x00\x7f", r#""\\ \t\a\x00\x7f""#),
        ("é 漢 😀 a\u{301}", "\"é 漢 😀 a\u{301}\""),
        ("\u{301}", "\"\u{301}\""),
        ("\u{85}\u{a0}\u{200b}\u{2028}\u{e000}\u{fffd}", "\"\\u0085\\u00a0\\u200b\\u2028\\ue000\u{fffd}\""),
        ("\u{e0001}", r#""\U000e0001""#),
    ];
    for (text, quoted) in rows {
        assert_eq!(quote(text), quoted);
    }
}
