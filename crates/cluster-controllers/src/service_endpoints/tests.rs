//! Decisions of the three controllers, from objects to writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::objects::{Endpoints, Slice, SliceStep};
use super::trigger::TriggerTimes;
use super::view::{Pod, Service};
use crate::endpoints::decide as subsets;
use crate::endpointslice::decide as slices;
use crate::endpointslice::decide::{Decision, FULL, SliceInputs};
use crate::endpointslice_mirroring::decide as mirror;

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn service(spec: Value) -> Service {
    let mut all = json!({
        "clusterIP": "10.0.0.7", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
        "ports": [{"name": "http", "protocol": "TCP", "targetPort": "http"}],
    });
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    object(json!({"metadata": {"name": "web", "namespace": "n", "uid": "s1"}, "spec": all}))
}

fn pod(number: usize) -> Value {
    let address = format!("10.1.{}.{}", number / 250, number % 250);
    json!({
        "metadata": {"name": format!("p{number:04}"), "namespace": "n", "uid": format!("u{number}"), "labels": {"app": "web"}},
        "spec": {"nodeName": "a", "containers": [{"ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]}]},
        "status": {"podIP": address, "podIPs": [{"ip": address}], "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn with(mut value: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, new) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[key] = new.clone();
    }
    value
}

fn decide(service: &Service, pods: &[Value], existing: &[Slice]) -> Decision {
    let pods: Vec<Pod> = pods.iter().cloned().map(object).collect();
    let zones = BTreeMap::from([("a".to_owned(), "west".to_owned()), ("b".to_owned(), String::new())]);
    let known = SliceInputs {
        service,
        pods: &pods.iter().collect::<Vec<_>>(),
        zones: &zones,
        slices: &existing.iter().collect::<Vec<_>>(),
        trigger: None,
    };
    slices::decide(&known)
}

/// The slices after the writes.
fn apply(existing: &[Slice], steps: Vec<SliceStep>) -> Vec<Slice> {
    let mut slices = existing.to_vec();
    for step in steps {
        match step {
            SliceStep::Create(mut slice) => {
                let mut number = 0;
                while slices.iter().any(|slice: &Slice| slice.name() == format!("made-{number}")) {
                    number += 1;
                }
                let name = format!("made-{number}");
                slice.metadata.name = Some(name);
                slices.push(slice);
            }
            SliceStep::Update(slice) => {
                let old = slices.iter_mut().find(|old| old.name() == slice.name()).unwrap();
                *old = slice;
            }
            SliceStep::Delete(slice) => slices.retain(|old| old.name() != slice.name()),
        }
    }
    slices
}

fn sizes(slices: &[Slice]) -> Vec<usize> {
    slices.iter().map(|slice| slice.endpoints.len()).collect()
}

fn shown(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn a_service_without_pods_has_one_empty_slice() {
    let service = service(json!({}));
    let made = apply(&[], decide(&service, &[], &[]).steps);
    assert_eq!(
        shown(&made[0]),
        json!({
            "metadata": {
                "name": "made-0", "generateName": "web-", "namespace": "n",
                "labels": {"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s1", "controller": true, "blockOwnerDeletion": true}],
            },
            "addressType": "IPv4", "endpoints": null, "ports": null,
        })
    );
    assert_eq!(decide(&service, &[], &made), Decision::default());
}

#[test]
fn the_empty_slice_is_reused_for_the_first_pod_and_after_the_last() {
    let service = service(json!({}));
    let empty = apply(&[], decide(&service, &[], &[]).steps);
    let one = apply(&empty, decide(&service, &[pod(1)], &empty).steps);
    assert_eq!((one.len(), one[0].name()), (1, "made-0"));
    assert_eq!(
        shown(&one[0].endpoints[0]),
        json!({
            "addresses": ["10.1.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false},
            "nodeName": "a", "zone": "west",
            "targetRef": {"kind": "Pod", "namespace": "n", "name": "p0001", "uid": "u1"},
        })
    );
    assert_eq!(shown(&one[0].ports), json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(decide(&service, &[pod(1)], &one), Decision::default());
    let none = apply(&one, decide(&service, &[], &one).steps);
    assert_eq!((sizes(&none), none[0].name()), (vec![0], "made-0"));
    assert!(none[0].ports.is_empty());
}

#[test]
fn conditions_of_an_endpoint_follow_its_pod() {
    let conditions = |spec: Value, changes: &[(&str, Value)]| {
        let steps = decide(&service(spec), &[with(pod(1), changes)], &[]).steps;
        let made = apply(&[], steps);
        let conditions = made[0].endpoints.first().map(|endpoint| endpoint.conditions.clone());
        conditions.map(|is| (is.ready.unwrap(), is.serving.unwrap(), is.terminating.unwrap()))
    };
    let ending = ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    let unready = ("/status/conditions", json!([]));
    let published = json!({"publishNotReadyAddresses": true});
    assert_eq!(conditions(json!({}), &[]), Some((true, true, false)));
    assert_eq!(conditions(json!({}), std::slice::from_ref(&unready)), Some((false, false, false)));
    assert_eq!(conditions(json!({}), std::slice::from_ref(&ending)), Some((false, true, true)));
    assert_eq!(conditions(published.clone(), &[ending, unready]), Some((true, false, true)));
    for phase in ["Failed", "Succeeded"] {
        assert_eq!(conditions(published.clone(), &[("/status/phase", json!(phase))]), None);
    }
    let lost = [("/spec/nodeName", json!("missing"))];
    assert_eq!(conditions(json!({}), &lost), None);
    assert_eq!(conditions(published, &lost), Some((true, true, false)));
}

#[test]
fn a_pod_with_a_missing_node_is_reported() {
    let lost = with(pod(1), &[("/spec/nodeName", json!("missing"))]);
    let both = service(json!({"ipFamilies": ["IPv4", "IPv6"]}));
    let said = "skipping Pod p0001 for Service n/web: Node missing Not Found";
    assert_eq!(decide(&both, &[lost], &[]).left_out, [said]);
}

#[test]
fn addresses_are_canonical_and_a_slice_has_one_family() {
    let addresses =
        json!([{"ip": "10.01.0.1"}, {"ip": "FD00:0::1"}, {"ip": "::ffff:10.1.0.2"}, {"ip": "none"}]);
    let pods = [with(pod(1), &[("/status/podIPs", addresses)])];
    let both = service(json!({"ipFamilies": ["IPv6", "IPv4"]}));
    let made = apply(&[], decide(&both, &pods, &[]).steps);
    let found: Vec<_> = made
        .iter()
        .map(|slice| (slice.address_type.as_str(), slice.endpoints[0].addresses.clone()))
        .collect();
    assert_eq!(
        found,
        [("IPv6", vec!["fd00::1".to_owned()]), ("IPv4", vec!["10.1.0.1".to_owned(), "10.1.0.2".to_owned()]),]
    );
    let left = apply(&made, decide(&service(json!({})), &pods, &made).steps);
    assert_eq!(left.iter().map(|slice| slice.address_type.as_str()).collect::<Vec<_>>(), ["IPv4"]);
}

#[test]
fn pods_with_different_ports_are_in_separate_slices() {
    let other = with(pod(2), &[("/spec/containers/0/ports/0/containerPort", json!(9090))]);
    let nothing = with(pod(3), &[("/spec/containers/0/ports/0/protocol", json!("UDP"))]);
    let sidecar = with(
        pod(4),
        &[
            ("/spec/containers", json!([])),
            (
                "/spec/initContainers",
                json!([{"restartPolicy": "Always", "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]}]),
            ),
        ],
    );
    let made = apply(&[], decide(&service(json!({})), &[pod(1), other, nothing, sidecar], &[]).steps);
    let mut found: Vec<_> = made
        .iter()
        .map(|slice| (slice.ports.first().and_then(|port| port.port), slice.endpoints.len()))
        .collect();
    found.sort();
    assert_eq!(found, [(None, 1), (Some(8080), 2), (Some(9090), 1)]);
}

#[test]
fn slices_are_filled_with_few_writes() {
    let service = service(json!({}));
    let pods = |range: std::ops::Range<usize>| range.map(pod).collect::<Vec<_>>();
    let first = apply(&[], decide(&service, &pods(0..250), &[]).steps);
    assert_eq!(sizes(&first), [FULL, FULL, 50]);
    // An added endpoint goes to the slice with room, a removed one leaves a gap, and the gap is filled in place.
    let steps = decide(&service, &pods(0..251), &first).steps;
    assert!(matches!(steps.as_slice(), [SliceStep::Update(slice)] if slice.endpoints.len() == 51));
    let less = apply(&first, decide(&service, &pods(1..250), &first).steps);
    assert_eq!(sizes(&less), [FULL - 1, FULL, 50]);
    let steps = decide(&service, &[pods(2..250), pods(300..303)].concat(), &less).steps;
    let updated: Vec<usize> = steps
        .iter()
        .map(|step| match step {
            SliceStep::Update(slice) => slice.endpoints.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(updated, [FULL, 51]);
    // A slice that becomes empty is deleted.
    let mut kept = pods(0..250);
    let in_first = |pod: &Value| {
        let mut names =
            first[0].endpoints.iter().filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.as_deref());
        names.any(|name| pod["metadata"]["name"] == name)
    };
    kept.retain(in_first);
    assert_eq!(sizes(&apply(&first, decide(&service, &kept, &first).steps)), [FULL]);
}

#[test]
fn labels_follow_the_service_except_managed_ones() {
    let mut labelled = service(json!({"clusterIP": "None"}));
    labelled.metadata.labels = object(json!({"tier": "front", "kubernetes.io/service-name": "other"}));
    let made = apply(&[], decide(&labelled, &[pod(1)], &[]).steps);
    assert_eq!(
        shown(&made[0].metadata.labels),
        json!({
            "tier": "front", "kubernetes.io/service-name": "web", "service.kubernetes.io/headless": "",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        })
    );
    assert_eq!(decide(&labelled, &[pod(1)], &made), Decision::default());
    labelled.metadata.labels.clear();
    let steps = decide(&labelled, &[pod(1)], &made).steps;
    assert!(matches!(steps.as_slice(), [SliceStep::Update(slice)] if slice.label("tier").is_none()));
}

#[test]
fn slices_of_an_older_service_with_the_same_name_are_deleted_and_not_used() {
    let old = apply(&[], decide(&service(json!({})), &[pod(1)], &[]).steps);
    let mut new = service(json!({}));
    new.metadata.uid = "s2".to_owned();
    let steps = decide(&new, &[pod(1)], &old).steps;
    assert!(matches!(steps.as_slice(), [SliceStep::Create(_), SliceStep::Delete(_)]), "{steps:?}");
    new.metadata.deletion_timestamp = object(json!("2026-01-01T00:00:00Z"));
    let steps = decide(&new, &[pod(1)], &old).steps;
    assert!(matches!(steps.as_slice(), [SliceStep::Delete(_)]), "{steps:?}");
}

#[test]
fn hints_follow_the_traffic_distribution() {
    let pods = [pod(1), with(pod(2), &[("/spec/nodeName", json!("b"))])];
    let hints = |slices: &[Slice]| {
        slices[0].endpoints.iter().map(|endpoint| shown(&endpoint.hints)).collect::<Vec<_>>()
    };
    let near = service(json!({"trafficDistribution": "PreferClose"}));
    let made = apply(&[], decide(&near, &pods, &[]).steps);
    assert_eq!(hints(&made), [json!({"forZones": [{"name": "west"}]}), Value::Null]);
    assert_eq!(decide(&near, &pods, &made), Decision::default());
    let same = service(json!({"trafficDistribution": "PreferSameNode"}));
    let made = apply(&made, decide(&same, &pods, &made).steps);
    assert_eq!(
        hints(&made),
        [
            json!({"forZones": [{"name": "west"}], "forNodes": [{"name": "a"}]}),
            json!({"forNodes": [{"name": "b"}]}),
        ]
    );
    let made = apply(&made, decide(&service(json!({})), &pods, &made).steps);
    assert_eq!(hints(&made), [Value::Null, Value::Null]);
}

fn endpoints(
    service: &Service,
    pods: &[Value],
    current: Option<&Endpoints>,
) -> Option<subsets::EndpointsStep> {
    let pods: Vec<Pod> = pods.iter().cloned().map(object).collect();
    subsets::decide(service, &pods.iter().collect::<Vec<_>>(), current, None)
}

fn made(step: Option<subsets::EndpointsStep>) -> Endpoints {
    match step {
        Some(subsets::EndpointsStep::Create(endpoints) | subsets::EndpointsStep::Update(endpoints)) => {
            endpoints
        }
        step => panic!("nothing is written: {step:?}"),
    }
}

#[test]
fn subsets_of_endpoints_are_grouped_by_ports() {
    let ports = json!([
        {"name": "http", "protocol": "TCP", "targetPort": "http"}, {"name": "n", "protocol": "TCP", "targetPort": 1},
    ]);
    let service = service(json!({"ports": ports}));
    let pods = [pod(1), with(pod(2), &[("/status/conditions", json!([]))])];
    let first = made(endpoints(&service, &pods, None));
    let address = |number: usize| {
        json!({
            "ip": format!("10.1.0.{number}"), "nodeName": "a",
            "targetRef": {"kind": "Pod", "namespace": "n", "name": format!("p{number:04}"), "uid": format!("u{number}")},
        })
    };
    assert_eq!(
        shown(&first.subsets),
        json!([{
            "addresses": [address(1)], "notReadyAddresses": [address(2)],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "n", "port": 1, "protocol": "TCP"}],
        }])
    );
    assert_eq!(endpoints(&service, &pods, Some(&first)), None);
    let mut other = first.clone();
    other.subsets[0].ports.reverse();
    assert_eq!(endpoints(&service, &pods, Some(&other)), None);
    let ending = with(pod(2), &[("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))]);
    let second = made(endpoints(&service, &[pod(1), ending], Some(&first)));
    assert_eq!(shown(&second.subsets[0].not_ready_addresses), json!([]));
}

#[test]
fn endpoints_have_labels_of_the_service_and_of_their_controller() {
    let mut headless = service(json!({"clusterIP": "None", "ports": []}));
    headless.metadata.labels = object(json!({"tier": "front"}));
    let first = made(endpoints(&headless, &[pod(1)], None));
    assert_eq!(
        shown(&first.metadata.labels),
        json!({"tier": "front", "endpoints.kubernetes.io/managed-by": "endpoint-controller", "service.kubernetes.io/headless": ""})
    );
    assert_eq!(shown(&first.subsets[0].ports), json!([]));
    assert_eq!(endpoints(&headless, &[pod(1)], Some(&first)), None);
    headless.metadata.labels.clear();
    assert!(matches!(endpoints(&headless, &[pod(1)], Some(&first)), Some(subsets::EndpointsStep::Update(_))));
}

#[test]
fn too_many_endpoints_are_truncated_unready_ones_first() {
    let service = service(json!({}));
    let pods = |ready: usize, rest: usize| -> Vec<Value> {
        let unready = |number| with(pod(number), &[("/status/conditions", json!([]))]);
        (0..ready).map(pod).chain((ready..ready + rest).map(unready)).collect()
    };
    let counts = |step: Option<subsets::EndpointsStep>| {
        let endpoints = made(step);
        let subset = &endpoints.subsets[0];
        let cut = endpoints.metadata.annotations.as_ref();
        let cut = cut.is_some_and(|all| all.contains_key("endpoints.kubernetes.io/over-capacity"));
        (subset.addresses.len(), subset.not_ready_addresses.len(), cut)
    };
    assert_eq!(counts(endpoints(&service, &pods(990, 10), None)), (990, 10, false));
    assert_eq!(counts(endpoints(&service, &pods(990, 20), None)), (990, 10, true));
    assert_eq!(counts(endpoints(&service, &pods(1001, 20), None)), (1000, 0, true));
}

fn mirrored(endpoints: Value, existing: &[Slice]) -> Vec<SliceStep> {
    mirror::decide(Some(&object::<Endpoints>(endpoints)), &existing.iter().collect::<Vec<_>>())
}

#[test]
fn endpoints_without_a_selector_are_mirrored() {
    let endpoints = json!({
        "metadata": {
            "name": "ext", "namespace": "n", "uid": "e1", "labels": {"a": "b"},
            "annotations": {"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "subsets": [{
            "addresses": [{"ip": "192.0.2.1", "hostname": "one"}, {"ip": "2001:db8::1"}, {"ip": "192.0.2.256"}],
            "notReadyAddresses": [{"ip": "192.0.2.2"}], "ports": [{"port": 1, "protocol": "TCP"}],
        }],
    });
    let slices = apply(&[], mirrored(endpoints.clone(), &[]));
    assert_eq!(sizes(&slices), [2, 1]);
    assert_eq!(
        shown(&slices[0].endpoints),
        json!([
            {"addresses": ["192.0.2.1"], "conditions": {"ready": true}, "hostname": "one"},
            {"addresses": ["192.0.2.2"], "conditions": {"ready": false}},
        ])
    );
    assert_eq!(shown(&slices[0].metadata.annotations), json!({"note": "x"}));
    assert_eq!(slices[0].metadata.owner_references.as_ref().unwrap()[0].kind, "Endpoints");
    assert_eq!(mirrored(endpoints.clone(), &slices), []);
    // Changed ports need no new slice.
    let moved = with(endpoints.clone(), &[("/subsets/0/ports/0/port", json!(2))]);
    let steps = mirrored(moved, &slices);
    assert!(matches!(steps.as_slice(), [SliceStep::Update(_), SliceStep::Update(_)]), "{steps:?}");
    let skipped = json!({"a": "b", "endpointslice.kubernetes.io/skip-mirror": "true"});
    for changed in [("/subsets", Value::Null), ("/metadata/labels", skipped)] {
        assert_eq!(apply(&slices, mirrored(with(endpoints.clone(), &[changed]), &slices)), []);
    }
    assert_eq!(apply(&slices, mirror::decide(None, &slices.iter().collect::<Vec<_>>())), []);
}

#[test]
fn the_trigger_is_the_earliest_new_change() {
    let time = |second: i64| Timestamp::from_second(second).unwrap();
    let mut service = service(json!({}));
    service.metadata.creation_timestamp = Some(object(json!(time(100).to_string())));
    let ready = |second: i64| {
        let condition =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": time(second).to_string()}]);
        object::<Pod>(with(pod(1), &[("/status/conditions", condition)]))
    };
    let mut seen = TriggerTimes::default();
    assert_eq!(seen.trigger(&service, &[Arc::new(ready(200))]), Some(time(100)));
    assert_eq!(seen.trigger(&service, &[Arc::new(ready(200))]), None);
    assert_eq!(seen.trigger(&service, &[Arc::new(ready(300))]), Some(time(300)));
    assert_eq!(seen.trigger(&service, &[]), None);
    assert_eq!(seen.trigger(&service, &[Arc::new(ready(50))]), Some(time(50)));
}

/// Deterministic random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pods(&mut self) -> Vec<Value> {
        let count = self.roll(260);
        let mut pods: Vec<Value> = (0..count).map(|_| self.roll(300)).map(pod).collect();
        pods.sort_by_key(|pod| pod["metadata"]["name"].to_string());
        pods.dedup_by_key(|pod| pod["metadata"]["name"].to_string());
        for pod in &mut pods {
            match self.roll(12) {
                0 => pod["status"]["conditions"] = json!([]),
                1 => pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
                2 => pod["spec"]["nodeName"] = json!("b"),
                3 => pod["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(9090),
                _ => {}
            }
        }
        pods
    }
}

#[test]
fn one_pass_converges_and_every_pod_is_in_one_slice() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let distribution = [Value::Null, json!("PreferClose"), json!("PreferSameNode")];
        let mut slices = Vec::new();
        for _ in 0..3 {
            let service = service(json!({"trafficDistribution": distribution[dice.roll(3)]}));
            let pods = dice.pods();
            slices = apply(&slices, decide(&service, &pods, &slices).steps);
            assert_eq!(decide(&service, &pods, &slices), Decision::default(), "seed {seed}");
            let names: Vec<&str> = slices
                .iter()
                .flat_map(|slice| &slice.endpoints)
                .filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.as_deref())
                .collect();
            let distinct: std::collections::BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!((names.len(), distinct.len()), (pods.len(), pods.len()), "seed {seed}");
            assert!(slices.iter().all(|slice| slice.endpoints.len() <= FULL), "seed {seed}");
        }
    }
}
