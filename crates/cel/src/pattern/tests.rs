//! Matches and errors of patterns, recorded from Kubernetes' own matcher.

use super::compile;

const TEXT: &str = "abc 123 A_b [x] {2} a.b é";

/// A pattern, and its first match or its error.
const RECORDED: &[(&str, Result<&str, &str>)] = &[
    ("(", Err("missing closing ): `(`")),
    (")", Err("unexpected ): `)`")),
    ("a)", Err("unexpected ): `a)`")),
    ("(a", Err("missing closing ): `(a`")),
    ("[a", Err("missing closing ]: `[a`")),
    ("[z-a]", Err("invalid character class range: `z-a`")),
    ("*", Err("missing argument to repetition operator: `*`")),
    ("a**", Err("invalid nested repetition operator: `**`")),
    ("a+*", Err("invalid nested repetition operator: `+*`")),
    ("a*?", Ok("")),
    ("a*??", Err("invalid nested repetition operator: `*??`")),
    ("(*)", Err("missing argument to repetition operator: `*`")),
    ("|*", Err("missing argument to repetition operator: `*`")),
    ("a{2}", Ok("")),
    ("a{,2}", Ok("")),
    ("a{2,1}", Err("invalid repeat count: `{2,1}`")),
    ("a{1001}", Err("invalid repeat count: `{1001}`")),
    ("{", Ok("{")),
    ("{2}", Err("missing argument to repetition operator: `{2}`")),
    ("a{", Ok("")),
    ("a{02}", Ok("")),
    ("x{1,}", Ok("x")),
    (r"\y", Err(r"invalid escape sequence: `\y`")),
    (r"\", Err("trailing backslash at end of expression: ``")),
    (r"\1", Err(r"invalid escape sequence: `\1`")),
    (r"\12", Ok("")),
    (r"\0", Ok("")),
    (r"\x41", Ok("A")),
    (r"\x{41}", Ok("A")),
    (r"\x{110000}", Err(r"invalid escape sequence: `\x{110000`")),
    (r"\xg", Err(r"invalid escape sequence: `\xg`")),
    ("(?i)a", Ok("a")),
    ("(?x)a", Err("invalid or unsupported Perl syntax: `(?x`")),
    ("(?=a)", Err("invalid or unsupported Perl syntax: `(?=`")),
    ("(?!a)", Err("invalid or unsupported Perl syntax: `(?!`")),
    ("(?<=a)", Err("invalid named capture: `(?<=a)`")),
    ("(?<!a)", Err("invalid named capture: `(?<!a)`")),
    ("(?P<n>a)", Ok("a")),
    ("(?<n>a)", Ok("a")),
    ("(?P<n", Err("invalid named capture: `(?P<n`")),
    ("(?P<n-a>b)", Err("invalid named capture: `(?P<n-a>`")),
    ("(?P=n)", Err("invalid or unsupported Perl syntax: `(?P`")),
    ("(?:a)", Ok("a")),
    ("(?i:a)", Ok("a")),
    ("(?-i)a", Ok("a")),
    ("(?-)a", Err("invalid or unsupported Perl syntax: `(?-)`")),
    ("(?i-s:a)", Ok("a")),
    ("(?)a", Ok("a")),
    ("[[:alpha:]]", Ok("a")),
    ("[[:foo:]]", Err("invalid character class range: `[:foo:]`")),
    ("[[]", Ok("[")),
    ("[]a]", Ok("a")),
    ("[^]a]", Ok("b")),
    ("[a-]", Ok("a")),
    ("[-a]", Ok("a")),
    (r"[a\]b]", Ok("a")),
    (r"[\d-z]", Ok("1")),
    (r"[a-\d]", Err(r"invalid escape sequence: `\d`")),
    (r"\pL", Ok("a")),
    (r"\p{Greek}", Ok("")),
    (r"\p{Foo}", Err(r"invalid character class range: `\p{Foo}`")),
    (r"\p", Err(r"invalid character class range: `\p`")),
    (r"\Qa.b\E", Ok("a.b")),
    (r"\Qa.b", Ok("a.b")),
    (r"\bfoo\b", Ok("")),
    (r"\B", Ok("")),
    (r"\C", Err(r"invalid escape sequence: `\C`")),
    (r"\_", Ok("_")),
    (r"\-", Ok("")),
    (r"\<", Ok("")),
    ("a&&b", Ok("")),
    ("[a&&b]", Ok("a")),
    ("[a--b]", Err("invalid character class range: `a--`")),
    ("[a~~b]", Ok("a")),
    ("^*", Ok("")),
    ("a|", Ok("a")),
    ("()", Ok("")),
    (r"[\w.-]+", Ok("abc")),
    (r"\z", Ok("")),
    (r"\Z", Err(r"invalid escape sequence: `\Z`")),
    (r"\h", Err(r"invalid escape sequence: `\h`")),
    ("é+", Ok("é")),
    ("[é-ü]", Ok("é")),
    ("a{1,1000}", Ok("a")),
    ("(a{1,100}){1,100}", Err("invalid repeat count: `{1,100}`")),
    ("(?i)(?s).", Ok("a")),
    (r"[^\W]", Ok("a")),
    (r"[\D]", Ok("a")),
    ("#", Ok("")),
    ("(?P<>a)", Err("invalid named capture: `(?P<>`")),
    ("a{2}{3}", Err("invalid nested repetition operator: `{2}{3}`")),
    ("a{2}?", Ok("")),
    ("(?U)a+", Ok("a")),
    ("(?m)^a$", Ok("")),
    ("[[:^alpha:]]", Ok(" ")),
    ("[a-z&&[^b]]", Ok("x]")),
    (r"a\", Err("trailing backslash at end of expression: ``")),
    (r"[\", Err("trailing backslash at end of expression: ``")),
];

#[test]
fn patterns_match_as_in_kubernetes() {
    for (pattern, expected) in RECORDED {
        let compiled = compile(pattern);
        let found = compiled.as_ref().map(|regex| regex.find(TEXT).map_or("", |found| found.as_str()));
        let expected = expected.map_err(|problem| format!("error parsing regexp: {problem}"));
        assert_eq!(found, expected.as_ref().copied(), "{pattern}");
    }
}

#[test]
fn no_pattern_panics_or_hangs() {
    assert!(compile(&"(".repeat(100_000)).is_err());
    assert!(compile(&format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000))).is_err());
    assert_eq!(
        compile(r"(\pL{1000}\pL{1000}){1}").unwrap_err(),
        "error parsing regexp: expression too large"
    );
    assert!(!compile(r"\d").unwrap().is_match("٣"), "digits are those of ASCII");
    assert!(!compile(r"\bé").unwrap().is_match("é"), "words are those of ASCII");
}

#[test]
fn repetitions_of_large_classes_are_expensive() {
    let weight = |pattern: &str| super::compile_weighed(pattern).1;
    assert_eq!(weight("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), super::Weight::Small);
    assert_eq!(weight(r"\pL"), super::Weight::Medium);
    assert_eq!(weight(r"\pL{20}"), super::Weight::Large);
    assert_eq!(weight("("), super::Weight::Small);
}
