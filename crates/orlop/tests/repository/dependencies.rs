//! The dependency graph: a crate imports only the crates in this table.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use crate::sources::{report, root};

/// The imports of each crate of the workspace. A new crate, or a new edge, is a decision: it goes here, into
/// ARCHITECTURE.md, and into an ADR with the reason.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("quantity", &[]),
    ("x509", &[]),
    ("lexical", &[]),
    ("cel", &["lexical", "quantity"]),
    ("model", &["lexical"]),
    ("quota", &["model", "quantity"]),
    ("kinds", &["cel", "model", "quantity", "quota", "x509"]),
    ("tasks", &[]),
    ("store", &["model", "tasks", "x509"]),
    ("process", &["tasks", "x509"]),
    ("descriptions", &[]),
    ("mount", &[]),
    ("apiserver", &["descriptions", "kinds", "model", "mount", "process", "quota", "store", "tasks", "x509"]),
    ("controller", &["model", "process", "tasks"]),
    ("role", &["controller", "mount", "process", "tasks"]),
    ("cluster-controllers", &["controller", "model", "process", "quota", "tasks", "x509"]),
    (
        "server",
        &[
            "apiserver",
            "cluster-controllers",
            "controller",
            "kinds",
            "model",
            "mount",
            "process",
            "role",
            "store",
            "tasks",
            "x509",
        ],
    ),
    (
        "orlop",
        &["apiserver", "controller", "kinds", "model", "process", "role", "server", "store", "tasks", "x509"],
    ),
    ("example-scores", &["apiserver", "model", "process", "store"]),
    ("example-routes", &["mount"]),
    ("example-teams", &["controller", "mount", "role"]),
    ("pgtest", &[]),
    ("test-tools", &[]),
    ("bench", &["apiserver", "kinds", "model", "pgtest", "process", "server", "store", "x509"]),
    ("oracle", &["kinds", "model", "x509"]),
    ("schema-gen", &[]),
    ("xtask", &[]),
];

/// Additional imports of the tests of any crate.
const TESTS_MAY_IMPORT: &[&str] = &["oracle", "pgtest", "test-tools"];

/// Additional imports of the tests of a product: they run the product on a server, which the product itself
/// never imports.
const TESTS_OF_PRODUCTS: &[(&str, &[&str])] =
    &[("example-routes", &["process", "server"]), ("example-teams", &["orlop", "server"])];

/// External crates that only these crates of the workspace may import, with the reason. `bench` measures the
/// same work without Orlop's code, and so imports its dependencies.
const RESERVED: &[(&str, &[&str], &str)] = &[
    ("rusqlite", &["store", "bench"], "no crate but store knows SQL"),
    ("tokio-postgres", &["store", "bench"], "no crate but store knows SQL"),
    ("hyper", &["process", "apiserver", "orlop", "bench"], "connections are the servers' business"),
    (
        "x509-parser",
        &["x509", "process"],
        "x509 reads requests, process reads certificates, and nobody else has a reader of their own",
    ),
    ("pem", &[], "x509 is the one reader and writer of PEM"),
    ("rustls-pemfile", &[], "x509 is the one reader and writer of PEM"),
    ("x509-cert", &[], "x509-parser reads and rcgen writes certificates"),
    (
        "kube",
        &["controller", "cluster-controllers", "role", "server", "orlop", "example-routes", "example-teams"],
        "what serves the API never calls it as a client",
    ),
    (
        "tokio",
        &[
            "tasks",
            "store",
            "process",
            "apiserver",
            "controller",
            "cluster-controllers",
            "role",
            "server",
            "orlop",
            "bench",
            "example-scores",
            "example-routes",
            "example-teams",
        ],
        "model and kinds have no I/O and no async",
    ),
];

struct Dependency {
    name: String,
    is_for_tests: bool,
}

/// Every crate of the workspace with the dependencies in its manifest.
fn manifests() -> Vec<(String, Vec<Dependency>)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    packages.iter().map(|package| (text(&package["name"]), dependencies(package))).collect()
}

fn dependencies(package: &Value) -> Vec<Dependency> {
    let list = package["dependencies"].as_array().expect("a package lists its dependencies");
    let dependency = |value: &Value| Dependency {
        name: text(&value["name"]),
        is_for_tests: value["kind"].as_str() == Some("dev"),
    };
    list.iter().map(dependency).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("names are text").to_owned()
}

#[test]
fn crates_import_only_the_allowed_crates() {
    let manifests = manifests();
    let members: BTreeSet<_> = manifests.iter().map(|(name, _)| name.as_str()).collect();
    let mut offences = Vec::new();
    for (name, dependencies) in &manifests {
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(known, _)| known == name) else {
            offences
                .push(format!("{name} is not in the table of crates/orlop/tests/repository/dependencies.rs"));
            continue;
        };
        for dependency in dependencies.iter().filter(|dependency| members.contains(dependency.name.as_str()))
        {
            // A crate may name itself to enable a feature for its own tests.
            let of_product = TESTS_OF_PRODUCTS.iter().find(|(product, _)| product == name);
            let for_tests = TESTS_MAY_IMPORT.contains(&&*dependency.name)
                || of_product.is_some_and(|(_, allowed)| allowed.contains(&&*dependency.name))
                || dependency.name == *name;
            if !(allowed.contains(&&*dependency.name) || dependency.is_for_tests && for_tests) {
                offences.push(format!("{name} imports {}", dependency.name));
            }
        }
    }
    report("these edges are not in the table of allowed ones", &offences);
}

#[test]
fn outside_crates_with_a_home_stay_there() {
    let mut offences = Vec::new();
    for (name, dependencies) in &manifests() {
        for dependency in dependencies {
            let Some((_, homes, reason)) = RESERVED.iter().find(|(outside, ..)| *outside == dependency.name)
            else {
                continue;
            };
            // Test support is no part of the program: it may open a socket or a connection.
            if !homes.contains(&name.as_str()) && name != "pgtest" {
                offences.push(format!("{name} names {}, but {reason}", dependency.name));
            }
        }
    }
    report("these crates are reserved", &offences);
}

#[test]
fn the_table_has_no_cycle_and_no_stranger() {
    for (index, (name, allowed)) in MAY_IMPORT.iter().enumerate() {
        for import in *allowed {
            let place = MAY_IMPORT.iter().position(|(known, _)| known == import);
            assert!(
                place.is_some_and(|place| place < index),
                "{name} may import {import}, which must stand above it"
            );
        }
    }
}
