//! Selectors good and bad; the messages are answers of kube-apiserver 1.35.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Vec<(String, Test)>, String> {
    parse(text)
        .map(|list| list.into_iter().map(|requirement| (requirement.key, requirement.test)).collect())
        .map_err(|error| error.to_string())
}

fn any_of(values: &[&str]) -> Test {
    Test::In(values.iter().map(|value| (*value).to_owned()).collect())
}

fn none_of(values: &[&str]) -> Test {
    Test::NotIn(values.iter().map(|value| (*value).to_owned()).collect())
}

#[test]
fn one_requirement_has_many_forms() {
    let rows = [
        ("a", Test::Exists),
        (" a ", Test::Exists),
        ("!a", Test::NotExists),
        ("! a", Test::NotExists),
        ("a=", any_of(&[""])),
        ("a=b", any_of(&["b"])),
        ("a == b", any_of(&["b"])),
        ("a\t!=\nb", none_of(&["b"])),
        ("a!=", none_of(&[""])),
        ("a in (b)", any_of(&["b"])),
        ("a in(c,b , c)", any_of(&["b", "c"])),
        ("a in ()", any_of(&[""])),
        ("a in (,)", any_of(&[""])),
        ("a in (b,,c)", any_of(&["", "b", "c"])),
        ("a in (,b)", any_of(&["", "b"])),
        ("a in (b,)", any_of(&["", "b"])),
        ("a notin (in,notin)", none_of(&["in", "notin"])),
        ("a=in", any_of(&["in"])),
        ("a>1", Test::GreaterThan(1)),
        ("a < 10", Test::LessThan(10)),
    ];
    for (text, test) in rows {
        assert_eq!(read(text), Ok(vec![("a".to_owned(), test)]), "{text}");
    }
}

#[test]
fn several_requirements_come_sorted() {
    let pair = |key: &str, test: Test| (key.to_owned(), test);
    assert_eq!(read(""), Ok(vec![]));
    assert_eq!(read("  "), Ok(vec![]));
    assert_eq!(
        read("x in (foo,,baz),y,example.com/a notin ()"),
        Ok(vec![
            pair("example.com/a", none_of(&[""])),
            pair("x", any_of(&["", "baz", "foo"])),
            pair("y", Test::Exists)
        ])
    );
    assert_eq!(read("in in (in),notin"), Ok(vec![pair("in", any_of(&["in"])), pair("notin", Test::Exists)]));
    assert_eq!(read("b=,a"), Ok(vec![pair("a", Test::Exists), pair("b", any_of(&[""]))]));
}

#[test]
fn faults_of_grammar_are_told_in_the_words_of_kubernetes() {
    let rows = [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!a in (b)", "found 'in', expected: ',' or 'end of string'"),
        ("a in (b)c", "found 'c', expected: ',' or 'end of string'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("!=", "found '!=', expected: !, identifier, or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("a=>b", "unable to parse requirement: found '>', expected: identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a ! b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in ((", "unable to parse requirement: found '(', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
    ];
    for (text, message) in rows {
        assert_eq!(read(text), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn keys_and_values_are_checked() {
    let number = "for 'Gt', 'Lt' operators, the value must be an integer";
    let name = names::qualified_name("-").remove(0);
    let value = names::label_value("-").remove(0);
    let rows = [
        ("a<x", format!("values[0]: Invalid value: \"x\": {number}")),
        ("a>", format!("values[0]: Invalid value: \"\": {number}")),
        ("a>9223372036854775808", format!("values[0]: Invalid value: \"9223372036854775808\": {number}")),
        ("a>-1", format!("values[0][a]: Invalid value: \"-1\": {value}")),
        (
            "a>-x",
            format!(
                "[values[0]: Invalid value: \"-x\": {number}, values[0][a]: Invalid value: \"-x\": {value}]"
            ),
        ),
        ("-a=b", format!("<nil>: Invalid value: \"-a\": {name}")),
        ("a/", format!("<nil>: Invalid value: \"a/\": name part must be non-empty; {name}")),
        ("é", format!("<nil>: Invalid value: \"é\": {name}")),
        ("a=-b", format!("values[0][a]: Invalid value: \"-b\": {value}")),
        (
            "a in (c_,-b)",
            format!(
                "[values[0][a]: Invalid value: \"-b\": {value}, values[1][a]: Invalid value: \"c_\": {value}]"
            ),
        ),
    ];
    for (text, message) in rows {
        assert_eq!(read(text), Err(format!("unable to parse requirement: {message}")), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_odd_to_read(text in "[abin=!<>(), \té-]{0,16}") {
        let _ = read(&text);
    }

    #[test]
    fn parsed_selectors_can_be_written_and_parsed_again(text in "(a|!b|c=d|e!=f|g in \\(h,i\\)|j notin \\(\\)|k>5)(,(l|!m|n=o)){0,4}") {
        let written: Vec<String> = parse(&text).unwrap().iter().map(written).collect();
        prop_assert_eq!(read(&written.join(",")), read(&text));
    }
}

fn written(requirement: &Requirement) -> String {
    let key = &requirement.key;
    match &requirement.test {
        Test::In(values) => format!("{key} in ({})", values.join(",")),
        Test::NotIn(values) => format!("{key} notin ({})", values.join(",")),
        Test::Exists => key.clone(),
        Test::NotExists => format!("!{key}"),
        Test::GreaterThan(bound) => format!("{key}>{bound}"),
        Test::LessThan(bound) => format!("{key}<{bound}"),
    }
}
