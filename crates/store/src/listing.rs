//! Pure decisions about reading a list: the start, the index that drives it, the end of a page.

use std::cmp::Ordering;

use model::selector::{Requirement, Target, Test};
use model::{ObjectKey, Revision, Selector};

use crate::types::{ClockState, Error, ListQuery, Page, Stored};

/// A page ends when its values take this many bytes: a client that does not read its list keeps one page in
/// memory.
pub const PAGE_BYTES: usize = 512 << 10;

/// The matches of a requirement are counted up to here. Below it, sorting them costs less than reading further.
pub const COUNT_CAP: u64 = 10_000;

/// Requirements are counted up to the first of these, then further, until one has fewer matches.
pub const CAPS: [u64; 3] = [65, 1024, COUNT_CAP];

/// Source of the candidates among the heads. All requirements are checked on each candidate in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drive<'a> {
    /// All heads of the resource or namespace, in key order.
    Scan,
    /// The heads with one of these names, in each namespace.
    Names(&'a [String]),
    /// The index entries of this requirement, which has several values: few, so they can be sorted.
    Few(&'a Requirement),
    /// The index entries of this value, which lie in key order: however many they are, they are read only as far as the page goes.
    Ordered(&'a Requirement, &'a str),
}

/// The requirements that the index can answer.
pub fn indexable(selector: &Selector) -> impl Iterator<Item = &Requirement> {
    selector.requirements.iter().filter(|requirement| {
        matches!(requirement.test, Test::In(_) | Test::Exists) && !is_key_field(requirement)
    })
}

/// The names that a requirement on `metadata.name` leaves, if there is one.
pub fn names(selector: &Selector) -> Option<&[String]> {
    values_of(selector, "metadata.name")
}

/// The one namespace that the list is confined to, by the query or by a requirement on `metadata.namespace`.
pub fn namespace(query: &ListQuery) -> Option<&str> {
    query.namespace.as_deref().or_else(|| match values_of(&query.selector, "metadata.namespace") {
        Some([one]) => Some(one),
        _ => None,
    })
}

/// The drive of a list that has no choice.
pub fn only_drive(selector: &Selector) -> Option<Drive<'_>> {
    if let Some(names) = names(selector) {
        return Some(Drive::Names(names));
    }
    let mut indexable = indexable(selector);
    match (indexable.next(), indexable.next()) {
        (None, _) => Some(Drive::Scan),
        (Some(only), None) => ordered(only),
        _ => None,
    }
}

/// Chooses among the counted requirements. Counts are capped at [`COUNT_CAP`].
pub fn choose<'a>(counted: &[(&'a Requirement, u64)]) -> Drive<'a> {
    match counted.iter().min_by_key(|(_, count)| *count) {
        Some((requirement, count)) if *count < COUNT_CAP => {
            ordered(requirement).unwrap_or(Drive::Few(requirement))
        }
        _ => counted.iter().find_map(|(requirement, _)| ordered(requirement)).unwrap_or(Drive::Scan),
    }
}

/// The entries of a requirement in key order, if it has one value.
fn ordered(requirement: &Requirement) -> Option<Drive<'_>> {
    match &requirement.test {
        Test::In(values) if values.len() == 1 => Some(Drive::Ordered(requirement, &values[0])),
        _ => None,
    }
}

fn is_key_field(requirement: &Requirement) -> bool {
    requirement.target == Target::Field
        && matches!(requirement.key.as_str(), "metadata.name" | "metadata.namespace")
}

/// The values that a requirement on a field leaves, if there is one.
pub fn values_of<'a>(selector: &'a Selector, field: &str) -> Option<&'a [String]> {
    selector.requirements.iter().find_map(|requirement| match &requirement.test {
        Test::In(values) if requirement.target == Target::Field && requirement.key == field => {
            Some(values.as_slice())
        }
        _ => None,
    })
}

/// The start of a list: behind this namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The namespace that the list is confined to, or the one that it begins in.
    pub namespace: String,
    /// Names of the first namespace have to be greater.
    pub name: String,
    /// Whether the list is confined to `namespace`.
    pub confined: bool,
}

impl Start {
    /// `None` if the position lies behind everything that the query could return.
    pub fn of(query: &ListQuery) -> Option<Self> {
        let Some(namespace) = namespace(query) else {
            let (namespace, name) =
                query.after.as_ref().map_or(("", ""), |after| (&*after.namespace, &*after.name));
            return Some(Self { namespace: namespace.to_owned(), name: name.to_owned(), confined: false });
        };
        let name = match &query.after {
            None => "",
            Some(after) => match after.namespace.as_str().cmp(namespace) {
                Ordering::Less => "",
                Ordering::Equal => &after.name,
                Ordering::Greater => return None,
            },
        };
        Some(Self { namespace: namespace.to_owned(), name: name.to_owned(), confined: true })
    }

    /// Whether an object lies behind it.
    pub fn admits(&self, namespace: &str, name: &str) -> bool {
        if self.confined {
            namespace == self.namespace && name > self.name.as_str()
        } else {
            (namespace, name) > (self.namespace.as_str(), self.name.as_str())
        }
    }
}

/// The revision of a read: `at` if it is kept, else the clock's.
pub fn as_of(at: Option<Revision>, clock: ClockState) -> Result<Revision, Error> {
    match at {
        None => Ok(clock.current),
        Some(requested) if requested > clock.current => {
            Err(Error::Future { requested, current: clock.current })
        }
        Some(requested) => not_compacted(requested, clock).map(|()| requested),
    }
}

/// Whether everything after this revision is still in the log.
pub fn not_compacted(requested: Revision, clock: ClockState) -> Result<(), Error> {
    if requested < clock.compacted {
        Err(Error::Expired { requested, compacted: clock.compacted })
    } else {
        Ok(())
    }
}

/// One version of an object, by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The revision that wrote it.
    pub revision: Revision,
}

/// Merges the heads that are old enough with the versions that were current then and are superseded now. Both are in key order
/// and have no key in common, so the result is in key order too.
pub fn merge<E>(
    heads: impl Iterator<Item = Result<ListedVersion, E>>,
    superseded: impl Iterator<Item = Result<ListedVersion, E>>,
) -> impl Iterator<Item = Result<ListedVersion, E>> {
    let mut heads = heads.peekable();
    let mut superseded = superseded.peekable();
    std::iter::from_fn(move || {
        let first = match (heads.peek(), superseded.peek()) {
            (Some(Ok(a)), Some(Ok(b))) => (&a.namespace, &a.name) <= (&b.namespace, &b.name),
            // An error is returned at once, from whichever side it comes.
            (Some(Err(_)), _) | (_, None) => true,
            (_, Some(_)) => false,
        };
        if first { heads.next() } else { superseded.next() }
    })
}

/// Collects a page until it is full.
#[derive(Debug)]
pub struct PageBuilder {
    items: Vec<Stored>,
    limit: usize,
    bytes: usize,
}

impl PageBuilder {
    /// An empty page for at most `limit` objects.
    pub fn new(limit: usize) -> Self {
        Self { items: Vec::with_capacity(limit.min(512)), limit, bytes: 0 }
    }

    /// Whether the next match belongs on the next page.
    pub fn is_full(&self) -> bool {
        self.items.len() >= self.limit || self.bytes >= PAGE_BYTES
    }

    /// Appends the next object.
    pub fn push(&mut self, item: Stored) {
        self.bytes += item.value.len();
        self.items.push(item);
    }

    /// The page, as of `revision`.
    pub fn finish(self, revision: Revision, more: bool, total: Option<u64>) -> Page {
        Page { revision, items: self.items, more, total }
    }
}

/// The key of a version in a resource's list.
pub fn key_of(query: &ListQuery, version: ListedVersion) -> ObjectKey {
    ObjectKey { resource: query.resource.clone(), namespace: version.namespace, name: version.name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Position;
    use model::Resource;

    fn requirement(key: &str, test: Test) -> Requirement {
        Requirement { target: Target::Label, key: key.into(), test }
    }

    fn query(namespace: Option<&str>, after: Option<(&str, &str)>) -> ListQuery {
        ListQuery {
            resource: Resource::new("", "pods"),
            namespace: namespace.map(str::to_owned),
            selector: Selector::default(),
            at: None,
            after: after.map(|(namespace, name)| Position { namespace: namespace.into(), name: name.into() }),
            limit: 10,
        }
    }

    fn version(name: &str, revision: u64) -> Result<ListedVersion, Error> {
        Ok(ListedVersion { namespace: "n".into(), name: name.into(), revision: Revision(revision) })
    }

    #[test]
    fn the_rarest_requirement_drives() {
        let a = requirement("a", Test::Exists);
        let b = requirement("b", Test::In(vec!["x".into(), "y".into()]));
        assert_eq!(choose(&[(&a, 50), (&b, 7)]), Drive::Few(&b));
        assert_eq!(choose(&[(&a, 7), (&b, COUNT_CAP)]), Drive::Few(&a));
    }

    #[test]
    fn entries_of_one_value_are_never_sorted_for_they_lie_in_key_order() {
        let a = requirement("a", Test::In(vec!["x".into()]));
        let b = requirement("b", Test::Exists);
        assert_eq!(choose(&[(&a, 7), (&b, 50)]), Drive::Ordered(&a, "x"));
        assert_eq!(choose(&[(&a, 50), (&b, 7)]), Drive::Few(&b));
    }

    #[test]
    fn requirements_are_counted_only_where_there_is_a_choice() {
        let one = || requirement("a", Test::In(vec!["x".into()]));
        let absent = || requirement("b", Test::NotExists);
        let selector = |requirements| Selector { requirements };
        assert_eq!(only_drive(&selector(vec![])), Some(Drive::Scan));
        assert_eq!(only_drive(&selector(vec![absent()])), Some(Drive::Scan));
        assert_eq!(only_drive(&selector(vec![absent(), one()])), Some(Drive::Ordered(&one(), "x")));
        assert_eq!(only_drive(&selector(vec![one(), one()])), None);
        assert_eq!(only_drive(&selector(vec![requirement("c", Test::Exists)])), None);
    }

    #[test]
    fn common_requirements_drive_only_where_their_entries_lie_in_key_order() {
        let many = requirement("a", Test::In(vec!["x".into(), "y".into()]));
        let one = requirement("b", Test::In(vec!["x".into()]));
        assert_eq!(choose(&[(&many, COUNT_CAP), (&one, COUNT_CAP)]), Drive::Ordered(&one, "x"));
        assert_eq!(choose(&[(&many, COUNT_CAP)]), Drive::Scan);
        assert_eq!(choose(&[]), Drive::Scan);
    }

    #[test]
    fn absence_and_the_key_itself_are_not_looked_up_in_the_index() {
        let mut name = requirement("metadata.name", Test::In(vec!["x".into()]));
        name.target = Target::Field;
        let selector = Selector {
            requirements: vec![
                requirement("a", Test::NotIn(vec!["x".into()])),
                requirement("b", Test::NotExists),
                name,
                requirement("c", Test::Exists),
            ],
        };
        assert_eq!(indexable(&selector).map(|r| r.key.as_str()).collect::<Vec<_>>(), ["c"]);
        assert_eq!(names(&selector), Some(["x".to_owned()].as_slice()));
    }

    #[test]
    fn a_position_outside_of_the_namespace_admits_all_of_it_or_nothing() {
        assert!(Start::of(&query(Some("m"), Some(("a", "z")))).unwrap().admits("m", "a"));
        assert!(!Start::of(&query(Some("m"), Some(("m", "k")))).unwrap().admits("m", "k"));
        assert_eq!(Start::of(&query(Some("m"), Some(("n", "a")))), None);
        assert!(Start::of(&query(None, Some(("m", "k")))).unwrap().admits("n", "a"));
    }

    #[test]
    fn a_merge_is_in_key_order() {
        let heads = vec![version("a", 1), version("d", 2)];
        let superseded = vec![version("b", 3), version("c", 4), version("e", 5)];
        let names: Vec<_> =
            merge(heads.into_iter(), superseded.into_iter()).map(|v| v.unwrap().name).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn a_read_is_as_of_a_kept_revision() {
        let clock = ClockState { current: Revision(9), compacted: Revision(4) };
        assert_eq!(as_of(None, clock), Ok(Revision(9)));
        assert_eq!(as_of(Some(Revision(4)), clock), Ok(Revision(4)));
        assert!(matches!(as_of(Some(Revision(3)), clock), Err(Error::Expired { .. })));
        assert!(matches!(as_of(Some(Revision(10)), clock), Err(Error::Future { .. })));
    }
}
