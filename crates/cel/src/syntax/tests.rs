//! Property tests of the parser.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{Expr, ExprKind, Literal, operators, parse};

/// Prints a tree with full parentheses.
fn print(expr: &Expr) -> String {
    let list = |exprs: &[Expr]| exprs.iter().map(print).collect::<Vec<_>>().join(", ");
    let mark = |is_optional: bool| if is_optional { "?" } else { "" };
    match &expr.kind {
        ExprKind::Literal(literal) => print_literal(literal),
        ExprKind::Ident(name) => name.clone(),
        ExprKind::Select { operand, field, .. } => format!("({}).{field}", print(operand)),
        ExprKind::Call { target: Some(target), function, args } => {
            format!("({}).{function}({})", print(target), list(args))
        }
        ExprKind::Call { target: None, function, args } => print_call(function, args),
        ExprKind::List { items, optional } => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| mark(optional.contains(&index)).to_owned() + &print(item));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        ExprKind::Map(entries) => {
            let entries = entries.iter().map(|entry| {
                format!("{}{}: {}", mark(entry.is_optional), print(&entry.key), print(&entry.value))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        ExprKind::Struct { name, fields } => {
            let fields = fields
                .iter()
                .map(|field| format!("{}{}: {}", mark(field.is_optional), field.name, print(&field.value)));
            format!("{name}{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        ExprKind::Comprehension(_) => unreachable!("there are no macros here"),
    }
}

fn print_call(function: &str, args: &[Expr]) -> String {
    match (function, args) {
        (operators::CONDITIONAL, [condition, if_true, if_false]) => {
            format!("(({}) ? ({}) : ({}))", print(condition), print(if_true), print(if_false))
        }
        (operators::INDEX, [operand, index]) => format!("({})[{}]", print(operand), print(index)),
        (operators::OPT_INDEX, [operand, index]) => format!("({})[?{}]", print(operand), print(index)),
        (operators::OPT_SELECT, [operand, Expr { kind: ExprKind::Literal(Literal::String(field)), .. }]) => {
            format!("({}).?{field}", print(operand))
        }
        (operators::NOT, [operand]) => format!("!({})", print(operand)),
        (operators::NEGATE, [operand]) => format!("-({})", print(operand)),
        (operators::IN, [one, two]) => format!("({}) in ({})", print(one), print(two)),
        (_, [one, two]) if function.starts_with('_') => {
            format!("(({}) {} ({}))", print(one), function.trim_matches('_'), print(two))
        }
        _ => format!("{function}({})", args.iter().map(print).collect::<Vec<_>>().join(", ")),
    }
}

fn print_literal(literal: &Literal) -> String {
    match literal {
        Literal::Null => "null".to_owned(),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(number) => format!("({number})"),
        Literal::Uint(number) => format!("{number}u"),
        Literal::Double(number) => format!("({number:?})"),
        Literal::String(text) => {
            let escaped: String = text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
            format!("'{escaped}'")
        }
        Literal::Bytes(bytes) => {
            let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("b'{escaped}'")
        }
    }
}

/// Generates valid expressions.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "a",
            "b",
            ".c",
            "true",
            "null",
            "1",
            "-2",
            "0x1f",
            "3u",
            "1.5",
            "-.5e3",
            "'x'",
            "\"\\n\"",
            "r'\\d'",
            "b'\\xff'",
            "'''q'r'''",
            "[]",
            "{}",
            "T{}",
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,3}".prop_filter("it is no word of the language", |word| word != "in"
            && word != "as"
            && word != "if"
            && word != "for"
            && word != "let"
            && word != "var"),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let binary = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||",
        ]);
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("{a} ? ({b}) : {c}")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            inner.clone().prop_map(|a| format!("({a}).f")),
            inner.clone().prop_map(|a| format!("({a}).?f")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[?{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).g({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("h({a}, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, ?{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            inner.prop_map(|a| format!("x.T{{f: {a}}}")),
        ]
    })
}

/// Generates random sequences of tokens.
fn soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a", "in", "has", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "+", "-", "!", "&&", "||", "==",
        "<", "1", "2.5", "'s'", "\"", "'", "b'", "`", "true", "null", ".all(x,", "\\", "é", "\n", "//", "0x",
        "=", "&",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn printed_expressions_parse_to_the_same_tree(text in expression()) {
        let macros = HashMap::new();
        let first = print(&parse(&text, &macros).expect("it is an expression").root);
        let second = print(&parse(&first, &macros).expect("what was printed is an expression").root);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn no_text_breaks_the_parser(text in prop_oneof![soup(), any::<String>()]) {
        let macros = super::standard_macros().into_iter().map(|one| (one.key(), one)).collect();
        if let Err(issues) = parse(&text, &macros) {
            prop_assert!(issues.to_string().starts_with("ERROR: <input>:"));
        }
    }
}
