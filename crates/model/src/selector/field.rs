//! Field selectors as clients write them: `spec.nodeName=a,status.phase!=Running`.

use super::{Requirement, Target, Test};
use crate::error::Error;

/// Parses the `fieldSelector` of a request. `supported` tells the fields that the resource type supports in
/// selectors.
pub fn parse(text: &str, supported: &dyn Fn(&str) -> bool) -> Result<Vec<Requirement>, Error> {
    let mut terms = split(text);
    // Kubernetes sorts them, which decides which of two errors it reports.
    terms.sort_unstable();
    let requirements = terms
        .into_iter()
        .filter(|term| !term.is_empty())
        .map(|term| requirement(term, text))
        .collect::<Result<Vec<_>, _>>()?;
    match requirements.iter().find(|requirement| !supported(&requirement.key)) {
        Some(unknown) => Err(Error::bad_request(format!("field label not supported: {}", unknown.key))),
        None => Ok(requirements),
    }
}

/// The terms between commas, but for commas after a backslash.
fn split(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn requirement(term: &str, text: &str) -> Result<Requirement, Error> {
    let unclear = || Error::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'"));
    let operator = find_operator(term).ok_or_else(unclear)?;
    let values = vec![unescape(&term[operator.end..])?];
    let test = if operator.negated { Test::NotIn(values) } else { Test::In(values) };
    Ok(Requirement { target: Target::Field, key: term[..operator.start].to_owned(), test })
}

struct Operator {
    start: usize,
    end: usize,
    negated: bool,
}

/// The first `=`, with the text before and after it: the key has no escapes.
fn find_operator(term: &str) -> Option<Operator> {
    let equals = term.find('=')?;
    let negated = term[..equals].ends_with('!');
    let double = !negated && term[equals + 1..].starts_with('=');
    Some(Operator { start: equals - usize::from(negated), end: equals + 1 + usize::from(double), negated })
}

fn unescape(value: &str) -> Result<String, Error> {
    let unknown = |sequence: &str| {
        Error::bad_request(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut out = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(unknown(&format!("\\{other}"))),
                None => return Err(unknown("\\")),
            },
            ',' | '=' => {
                let code = u32::from(character);
                let message = format!("invalid field selector: unescaped character in value: {code}");
                return Err(Error::bad_request(message));
            }
            _ => out.push(character),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<(String, Test)>, String> {
        parse(text, &|field| ["a", "metadata.name"].contains(&field))
            .map(|list| list.into_iter().map(|requirement| (requirement.key, requirement.test)).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn terms_are_equalities() {
        let is = |key: &str, value: &str| (key.to_owned(), Test::In(vec![value.to_owned()]));
        let is_not = |key: &str, value: &str| (key.to_owned(), Test::NotIn(vec![value.to_owned()]));
        let rows = [
            ("", vec![]),
            (",,", vec![]),
            ("a=b", vec![is("a", "b")]),
            ("a==b", vec![is("a", "b")]),
            ("a!=b", vec![is_not("a", "b")]),
            ("a=", vec![is("a", "")]),
            ("a!=", vec![is_not("a", "")]),
            ("a= b ", vec![is("a", " b ")]),
            ("metadata.name=x,a!=y,", vec![is_not("a", "y"), is("metadata.name", "x")]),
            (r"a=b\,c\=d\\e", vec![is("a", r"b,c=d\e")]),
            ("a=!é", vec![is("a", "!é")]),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn faults_are_told_in_the_words_of_kubernetes() {
        let rows = [
            ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
            ("a!", "invalid selector: 'a!'; can't understand 'a!'"),
            ("foo=1,b", "invalid selector: 'foo=1,b'; can't understand 'b'"),
            (r"a=a\", r"invalid field selector: invalid escape sequence: \"),
            (r"a=a\x", r"invalid field selector: invalid escape sequence: \x"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a===b", "invalid field selector: unescaped character in value: 61"),
            ("foo=bar", "field label not supported: foo"),
            ("foo!=bar", "field label not supported: foo"),
            ("=a", "field label not supported: "),
            ("!=a", "field label not supported: "),
            ("metadata.name = a", "field label not supported: metadata.name "),
            ("a=1,foo=1,bar=2", "field label not supported: bar"),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn escaped_values_come_back(value in "\\PC{0,12}") {
            let escaped = value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            prop_assert_eq!(read(&format!("a={escaped}")), Ok(vec![("a".to_owned(), Test::In(vec![value]))]));
        }

        #[test]
        fn no_text_is_too_odd_to_read(text in "[a=!,\\\\é ]{0,12}") {
            let _ = read(&text);
        }
    }
}
