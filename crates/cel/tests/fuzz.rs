//! No input makes the crate panic, hang or overflow. A few cases run with the other tests; a long run is
//! `PROPTEST_CASES=1000000 cargo test --release -p cel --test fuzz`.

use std::sync::LazyLock;

use cel::{Declared, Env, Type, Value};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// The cost limit of an evaluation.
const COST_LIMIT: u64 = 20_000;

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let env = Env::new(cel::library::kubernetes::libraries());
    env.variable("d", Type::Dyn)
        .variable("n", Type::Int)
        .variable("s", Type::String)
        .variable("l", Type::list(Type::Dyn))
        .variable("m", Type::map(Type::String, Type::Dyn))
});

/// Compiles and evaluates an expression within the cost limit.
fn run(source: &str, object: &Json) {
    let Ok(program) = ENV.compile(source) else { return };
    let declared = Declared::dynamic();
    let read = |json| Value::from_json(json, declared).expect("anything is dynamic");
    let empty_list = json!([]);
    let empty_map = json!({});
    let list = object.as_array().map_or(&empty_list, |_| object);
    let map = object.as_object().map_or(&empty_map, |_| object);
    let text = object.as_str().unwrap_or("text");
    let number = object.as_i64().unwrap_or(7);
    let bindings = [
        ("d", read(object)),
        ("n", Value::Int(number)),
        ("s", Value::from(text)),
        ("l", read(list)),
        ("m", read(map)),
    ];
    let outcome = program.evaluate(&bindings, COST_LIMIT);
    if let Err(error) = &outcome.value {
        assert!(!error.message().is_empty(), "{source} fails without a word");
    }
    if outcome.value.is_ok() {
        assert!(outcome.cost <= COST_LIMIT, "{source} has cost {}", outcome.cost);
    }
}

fn json_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "[a-z0-9.:/é -]{0,12}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|entries| Json::from_iter(entries.into_iter().collect::<Vec<_>>())),
        ]
    })
}

/// Tokens of the language, in random order.
const TOKENS: [&str; 60] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    "?",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    " in ",
    "null",
    "true",
    "1",
    "2u",
    "1.5e3",
    "0x1F",
    "'a'",
    "r'\\d'",
    "b'x'",
    "'''t'''",
    "\"q\"",
    "d",
    "n",
    "s",
    "l",
    "m",
    "x",
    ".all",
    ".map",
    ".filter",
    ".exists",
    "has",
    "size",
    "type",
    "dyn",
    "optional",
    ".?",
    "[?",
    ".matches",
    ".format",
    "duration",
    "timestamp",
    "quantity",
    "ip",
    "\n// c\n",
];

/// Atomic expressions.
const LEAVES: &str = "d ~ n ~ s ~ l ~ m ~ 1 ~ -1 ~ 0 ~ 2u ~ 1.5 ~ 'a' ~ '%s %d' ~ '[a-z]+' ~ true ~ null ~ [] ~ {} ~ \
    [1, 2, 3] ~ ['a', 'b'] ~ {'a': 1} ~ x ~ duration('1h') ~ timestamp('2020-01-01T00:00:00Z') ~ \
    9223372036854775807 ~ ip('10.0.0.1') ~ cidr('10.0.0.0/8') ~ quantity('1Gi') ~ \
    semver('1.2.3') ~ url('https://a/b') ~ optional.of(1) ~ optional.none() ~ format.uri() ~ \
    b'ab' ~ lists.range(9)";

/// Binary operators.
const BINARY: &str = "+ ~ - ~ * ~ / ~ % ~ == ~ != ~ < ~ >= ~ && ~ || ~ in";

/// Functions of one argument.
const FUNCTIONS: &str = "size ~ string ~ int ~ uint ~ double ~ bool ~ bytes ~ type ~ dyn ~ ! ~ - ~ isIP ~ isURL ~ \
    isQuantity ~ sign ~ sets.contains ~ strings.quote";

/// Selections and calls without arguments.
const MEMBERS: &str = "a ~ size() ~ sum() ~ min() ~ isSorted() ~ trim() ~ upperAscii() ~ split('') ~ reverse() ~ \
    distinct() ~ sort() ~ flatten() ~ getSeconds() ~ getFullYear('+01:00') ~ family() ~ value() ~ \
    hasValue() ~ join(',') ~ major() ~ asInteger() ~ getQuery() ~ first()";

/// Member functions with one argument.
const METHODS: &str = "contains ~ startsWith ~ matches ~ find ~ findAll ~ indexOf ~ replace ~ split ~ format ~ \
    slice ~ add ~ compareTo ~ containsIP ~ orValue ~ or ~ validate ~ join ~ substring ~ charAt ~ \
    lastIndexOf";

/// Macros with a variable.
const FOLDS: &str = "all ~ exists ~ exists_one ~ map ~ filter ~ sortBy ~ optMap";

/// One of several texts, separated by tildes.
fn any_of(texts: &'static str) -> impl Strategy<Value = &'static str> + Clone {
    prop::sample::select(texts.split(" ~ ").collect::<Vec<_>>())
}

/// Expressions that mostly parse and often check.
fn expression() -> impl Strategy<Value = String> {
    let leaf = any_of(LEAVES).prop_map(str::to_owned);
    leaf.prop_recursive(6, 60, 3, |inner| {
        let binary = any_of(BINARY);
        let unary = any_of(FUNCTIONS);
        let member = any_of(MEMBERS);
        let method = any_of(METHODS);
        let fold = any_of(FOLDS);
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (unary, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (inner.clone(), member).prop_map(|(a, f)| format!("{a}.{f}")),
            (inner.clone(), method, inner.clone()).prop_map(|(a, f, b)| format!("{a}.{f}({b})")),
            (inner.clone(), fold, inner.clone()).prop_map(|(a, f, b)| format!("{a}.{f}(x, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{{'k': {a}, 'j': {b}}}")),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_compiles_or_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        run(&String::from_utf8_lossy(&bytes), &Json::Null);
    }

    #[test]
    fn any_tokens_compile_or_are_refused(words in prop::collection::vec(prop::sample::select(&TOKENS), 0..40), object in json_value()) {
        run(&words.concat(), &object);
    }

    #[test]
    fn every_evaluation_terminates(source in expression(), object in json_value()) {
        run(&source, &object);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("!", "true", ""),
        ("-", "n", ""),
        ("{'a': ", "1", "}"),
        ("d.", "a", ""),
        ("1 + ", "1", ""),
        ("true ? ", "1", " : 2"),
        ("d[", "0", "]"),
        ("l.all(x, ", "true", ")"),
        ("size(", "s", ")"),
    ] {
        for depth in [10, 250, 10_000, 100_000] {
            run(&format!("{}{middle}{}", open.repeat(depth), close.repeat(depth)), &json!([[[1]]]));
        }
    }
}

#[test]
fn growing_values_hit_the_cost_limit() {
    for source in [
        "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))",
        "l.map(a, l.map(b, l.map(c, l.map(d, [a, b, c, d])))).size() > 0",
        "[s, s, s, s].map(a, [a, a, a, a].join(a)).map(b, [b, b, b, b].join(b)).map(c, [c, c, c].join(c)).size() > 0",
        "lists.range(9223372036854775807).size() > 0",
        "'%s%s%s'.format([s, s, s]).replace('', s).replace('', s).replace('', s).size() > 0",
    ] {
        let object = json!((0..200).collect::<Vec<_>>());
        run(source, &object);
    }
}
