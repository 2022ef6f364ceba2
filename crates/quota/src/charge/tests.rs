//! Charging of creates and updates, and its errors.

use super::*;

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

fn quota(hard: Value, used: Value, spec: Value) -> Object {
    object(json!({"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": used}}))
}

fn charged_with(of: &Object, plural: &str, new: Value, old: Option<Value>) -> Result<Option<Value>, String> {
    let counted = Counted { group: "", plural, now: 0 };
    let old = old.map(object);
    let changed = charge(&[Quota::read(of)], counted, &object(new), old.as_ref(), false)?;
    Ok(changed.into_iter().next().map(|(_, quota)| quota["status"]["used"].clone()))
}

#[test]
fn object_counts_are_limited() {
    let one = quota(json!({"configmaps": "2"}), json!({"configmaps": "1"}), json!({}));
    assert_eq!(charged_with(&one, "configmaps", json!({}), None), Ok(Some(json!({"configmaps": "2"}))));
    let full = quota(json!({"configmaps": "1"}), json!({"configmaps": "1"}), json!({}));
    assert_eq!(
        charged_with(&full, "configmaps", json!({}), None),
        Err("exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
            .to_owned())
    );
    assert_eq!(charged_with(&full, "secrets", json!({}), None), Ok(None));
    let unknown = quota(json!({"configmaps": "1"}), json!({}), json!({}));
    assert_eq!(
        charged_with(&unknown, "configmaps", json!({}), None),
        Err("status unknown for quota: q, resources: configmaps".to_owned())
    );
}

#[test]
fn pods_are_charged_for_their_requests_and_limits() {
    let of = quota(json!({"cpu": "1", "pods": "5"}), json!({"cpu": "500m", "pods": "1"}), json!({}));
    let pod =
        |cpu: &str| json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
    assert_eq!(charged_with(&of, "pods", pod("500m"), None), Ok(Some(json!({"cpu": "1", "pods": "2"}))));
    assert_eq!(
        charged_with(&of, "pods", pod("600m"), None),
        Err("exceeded quota: q, requested: cpu=600m, used: cpu=500m, limited: cpu=1".to_owned())
    );
    assert_eq!(
        charged_with(&of, "pods", json!({"spec": {"containers": [{"name": "c"}]}}), None),
        Err("failed quota: q: must specify cpu for: c".to_owned())
    );
    let scoped = quota(json!({"pods": "5"}), json!({"pods": "1"}), json!({"scopes": ["Terminating"]}));
    assert_eq!(charged_with(&scoped, "pods", pod("1"), None), Ok(None));
}

#[test]
fn updates_are_charged_for_the_difference() {
    let of = quota(
        json!({"services.nodeports": "3", "services": "9"}),
        json!({"services.nodeports": "1", "services": "1"}),
        json!({}),
    );
    let service = |ports: usize| json!({"spec": {"type": "NodePort", "ports": vec![json!({}); ports]}});
    let charged = charged_with(&of, "services", service(3), Some(service(1)));
    assert_eq!(charged, Ok(Some(json!({"services": "1", "services.nodeports": "3"}))));
    assert_eq!(charged_with(&of, "services", service(1), Some(service(1))), Ok(None));
}
