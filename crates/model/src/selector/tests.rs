//! Matches of selectors.

use super::*;
use crate::Resource;

fn matches(selector: &Selector, labels: &[(&str, &str)], fields: &[(&str, &str)]) -> bool {
    let owned =
        |list: &[(&str, &str)]| list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let key = ObjectKey::new(&Resource::new("", "pods"), "default", "a");
    selector.matches(&key, &Attributes::new(owned(labels), owned(fields)))
}

#[test]
fn labels_are_tested() {
    let rows = [
        ("", vec![true, true, true, true]),
        ("x", vec![false, true, true, true]),
        ("!x", vec![true, false, false, false]),
        ("x=", vec![false, true, false, false]),
        ("x=5", vec![false, false, true, false]),
        ("x!=5", vec![true, true, false, true]),
        ("x in (5,a)", vec![false, false, true, true]),
        ("x notin (5)", vec![true, true, false, true]),
        ("x>4", vec![false, false, true, false]),
        ("x>5", vec![false, false, false, false]),
        ("x<6", vec![false, false, true, false]),
        ("x,x!=5", vec![false, true, false, true]),
        ("x,y", vec![false, false, false, false]),
    ];
    for (text, expected) in rows {
        let selector = Selector { requirements: label::parse(text).unwrap() };
        let found: Vec<bool> = [vec![], vec![("x", "")], vec![("x", "5")], vec![("x", "a")]]
            .iter()
            .map(|labels| matches(&selector, labels, &[]))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn fields_are_tested_and_the_name_comes_from_the_key() {
    let rows = [
        ("", true),
        ("metadata.name=a", true),
        ("metadata.name=b", false),
        ("metadata.name!=b,metadata.namespace=default", true),
        ("metadata.namespace!=default", false),
        ("spec.nodeName=n", true),
        ("spec.nodeName!=n", false),
        ("status.phase=", true),
        ("status.phase!=Running", true),
        ("x=5", false),
    ];
    for (text, expected) in rows {
        let selector = Selector { requirements: field::parse(text, &|_| true).unwrap() };
        let fields = [("spec.nodeName", "n"), ("status.phase", "")];
        assert_eq!(matches(&selector, &[("x", "5")], &fields), expected, "{text}");
    }
}
