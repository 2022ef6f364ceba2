//! The rules of Go for flags: how its parsers read arguments.

use super::*;
use crate::{etcd, kube_apiserver};

fn kube(arguments: &[&str]) -> Result<Given, BadArguments> {
    parse(kube_apiserver::FLAGS, Dialect::Pflag, arguments.iter().map(|&argument| argument.to_owned()))
}

fn etcd(arguments: &[&str]) -> Result<Given, BadArguments> {
    parse(etcd::FLAGS, Dialect::Standard, arguments.iter().map(|&argument| argument.to_owned()))
}

#[test]
fn values_come_behind_an_equals_sign_or_as_the_next_argument() {
    for arguments in
        [&["--secure-port=1", "--v=3"][..], &["--secure-port", "1", "-v", "3"], &["--secure_port=1", "-v3"]]
    {
        let given = kube(arguments).unwrap();
        assert_eq!((given.number("secure-port"), given.text("v")), (Some(1), Some("3")), "{arguments:?}");
    }
}

#[test]
fn switches_take_no_argument_of_their_own() {
    let given = kube(&["--allow-privileged", "--anonymous-auth=false", "--watch-cache=T"]).unwrap();
    assert_eq!(given.switch("allow-privileged"), Some(true));
    assert_eq!(given.switch("anonymous-auth"), Some(false));
    assert_eq!(given.switch("watch-cache"), Some(true));
    assert_eq!(given.switch("profiling"), None);
    assert_eq!(kube(&["--allow-privileged", "false"]).unwrap().rest, ["false"]);
}

#[test]
fn lists_and_pairs_add_up_and_the_last_text_counts() {
    let given = kube(&[
        "--authorization-mode=RBAC, Node",
        "--authorization-mode=AlwaysAllow",
        "--runtime-config=api/all=true,apps/v1=false",
        "--runtime-config=v1=true",
        "--service-account-issuer=a,b",
        "--service-account-issuer=c",
        "--etcd-prefix=/a",
        "--etcd-prefix=/b",
    ])
    .unwrap();
    assert_eq!(given.list("authorization-mode"), ["RBAC", "Node", "AlwaysAllow"]);
    let pairs: Vec<_> = given.pairs("runtime-config").into_iter().map(|(key, _)| key).collect();
    assert_eq!(pairs, ["api/all", "apps/v1", "v1"]);
    assert_eq!(given.each("service-account-issuer").collect::<Vec<_>>(), ["a,b", "c"]);
    assert_eq!(given.text("etcd-prefix"), Some("/b"));
}

#[test]
fn a_repeated_flag_with_a_single_value_takes_the_last_one() {
    for (name, first, last) in [
        ("service-cluster-ip-range", "10.0.0.0/24,10.1.0.0/24", "10.96.0.0/12"),
        ("secure-port", "1", "2"),
        ("anonymous-auth", "true", "false"),
        ("request-timeout", "1m", "2m"),
        ("advertise-address", "10.0.0.1", "10.0.0.2"),
        ("goaway-chance", "0.01", "0.02"),
        ("v", "2", "4"),
    ] {
        let given = kube(&[&format!("--{name}={first}"), &format!("--{name}={last}")]).unwrap();
        assert_eq!(given.text(name), Some(last), "{name}");
        assert_eq!(given.each(name).collect::<Vec<_>>(), [last], "{name}");
        assert_eq!(given.list(name), [last], "{name}");
    }
}

#[test]
fn a_repeated_list_adds_up_for_kube_apiserver_and_is_replaced_for_etcd() {
    let given = kube(&["--etcd-servers=http://a:1,http://b:1", "--etcd-servers", "http://c:1"]).unwrap();
    assert_eq!(given.list("etcd-servers"), ["http://a:1", "http://b:1", "http://c:1"]);
    let given = etcd(&["--listen-client-urls=http://a:1,http://b:1", "-listen-client-urls", "http://c:1"]);
    assert_eq!(given.unwrap().list("listen-client-urls"), ["http://c:1"]);
}

#[test]
fn empty_arguments_are_ignored_unless_a_flag_wants_a_value() {
    for (arguments, port) in [
        (&["", "--secure-port=1", ""][..], Some(1)),
        (&["--secure-port", "1", ""], Some(1)),
        (&["--allow-privileged", "", "--secure-port=1"], Some(1)),
        (&[""], None),
    ] {
        let given = kube_apiserver::without_words(kube(arguments).unwrap()).unwrap();
        assert_eq!(given.number("secure-port"), port, "{arguments:?}");
    }
    assert_eq!(kube(&["--etcd-prefix", "", "--secure-port=1"]).unwrap().text("etcd-prefix"), Some(""));
    let refused = kube_apiserver::without_words(kube(&["", "one", "two"]).unwrap()).unwrap_err();
    let expected = r#""kube-apiserver" does not take any arguments, got ["" "one" "two"]"#;
    assert_eq!(refused.to_string(), expected);
    for arguments in [["", "--data-dir=d"], ["--data-dir=d", ""]] {
        let given = etcd(&arguments).unwrap();
        assert_eq!((given.text("data-dir"), given.rest.len()), (Some("d"), 0), "{arguments:?}");
    }
}

#[test]
fn wrong_arguments_are_refused_in_kubernetes_words() {
    for (argument, expected) in [
        ("--foo", "unknown flag: --foo"),
        ("--foo=1", "unknown flag: --foo"),
        ("--insecure-port=0", "unknown flag: --insecure-port"),
        ("-x", "unknown shorthand flag: 'x' in -x"),
        ("--secure-port", "flag needs an argument: --secure-port"),
        (
            "--secure-port=abc",
            "invalid argument \"abc\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"abc\": invalid syntax",
        ),
        (
            "--allow-privileged=maybe",
            "invalid argument \"maybe\" for \"--allow-privileged\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
        ),
        (
            "--v=x",
            "invalid argument \"x\" for \"-v, --v\" flag: strconv.ParseUint: parsing \"x\": invalid syntax",
        ),
        (
            "--request-timeout=xx",
            "invalid argument \"xx\" for \"--request-timeout\" flag: time: invalid duration \"xx\"",
        ),
        (
            "--advertise-address=foo",
            "invalid argument \"foo\" for \"--advertise-address\" flag: failed to parse IP: \"foo\"",
        ),
    ] {
        assert_eq!(kube(&[argument]).unwrap_err().to_string(), expected);
    }
}

#[test]
fn etcd_takes_one_dash_or_two_and_has_words_of_its_own() {
    for arguments in [["-data-dir", "d"], ["--data-dir", "d"]] {
        assert_eq!(etcd(&arguments).unwrap().text("data-dir"), Some("d"));
    }
    for (argument, expected) in [
        ("--foo", "flag provided but not defined: -foo"),
        ("--data-dir", "flag needs an argument: -data-dir"),
        ("--unsafe-no-fsync=maybe", "invalid value \"maybe\" for flag -unsafe-no-fsync: parse error"),
    ] {
        assert_eq!(etcd(&[argument]).unwrap_err().to_string(), expected);
    }
    assert_eq!(etcd(&["bare", "--data-dir=d"]).unwrap().rest, ["bare", "--data-dir=d"]);
}

#[test]
fn no_flag_is_swallowed() {
    let given = kube(&[
        "--profiling=false",
        "--goaway-chance=0.0",
        "--shutdown-delay-duration=0s",
        "--audit-log-batch-max-size=2",
        "--encryption-provider-config=x",
        "--enable-logs-handler",
    ]);
    let Remarks { refusals, warnings, notes } = given.unwrap().remarks();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert_eq!(
        warnings,
        [
            "--audit-log-batch-max-size has no effect here: waiting events are written together, and no event is truncated",
            "Flag --enable-logs-handler has been deprecated, Log handler functionality is deprecated"
        ]
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn the_help_has_every_flag_once_and_none_that_tools_look_for_in_vain() {
    for table in [kube_apiserver::FLAGS, etcd::FLAGS] {
        let help = Help(table).to_string();
        for flag in table.iter().flat_map(|group| group.flags) {
            let lines = help.lines().filter(|line| {
                line.split_whitespace().take(2).any(|word| word.strip_prefix("--") == Some(flag.name))
            });
            assert_eq!(lines.count(), 1, "--{}", flag.name);
        }
    }
    assert!(!Help(kube_apiserver::FLAGS).to_string().contains("--insecure-port"));
}
