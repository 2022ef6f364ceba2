//! Sets of fields: trees of path elements, each of which may be a member itself.

use std::cmp::Ordering;

use super::element::Element;

/// A set of paths. The empty path is in none: the object itself has no owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet<'a> {
    /// Sorted; each is a member or has children.
    entries: Vec<FieldEntry<'a>>,
}

/// One element of a set, with the paths below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldEntry<'a> {
    /// The last element of the path.
    pub element: Element<'a>,
    /// Whether the path that ends here is in the set.
    pub member: bool,
    /// The paths below this one.
    pub children: FieldSet<'a>,
}

/// A subtree whose element only the caller knows.
#[derive(Debug, Default)]
pub(super) struct Subtree<'a> {
    pub member: bool,
    pub children: FieldSet<'a>,
}

impl Subtree<'_> {
    pub const MEMBER: Self = Self { member: true, children: FieldSet { entries: Vec::new() } };

    /// Whether the subtree is empty.
    pub fn is_nothing(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl<'a> FieldSet<'a> {
    /// The empty set.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The empty set, with capacity for `entries`.
    pub(super) fn with_room(entries: usize) -> Self {
        Self { entries: Vec::with_capacity(entries) }
    }

    /// The set of one path.
    pub fn of(path: &[Element<'a>]) -> Self {
        let Some((first, rest)) = path.split_first() else { return Self::new() };
        let (element, member) = (first.clone(), rest.is_empty());
        Self { entries: vec![FieldEntry { element, member, children: Self::of(rest) }] }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, sorted.
    pub fn entries(&self) -> &[FieldEntry<'a>] {
        &self.entries
    }

    /// Builds a set from unsorted subtrees.
    pub(super) fn of_subtrees(mut subtrees: Vec<(Element<'a>, Subtree<'a>)>) -> Self {
        subtrees.sort_by(|a, b| a.0.cmp(&b.0));
        let mut set = Self { entries: Vec::with_capacity(subtrees.len()) };
        subtrees.into_iter().for_each(|(element, subtree)| set.put(element, subtree));
        set
    }

    /// Puts a subtree at an element; usually the last one.
    pub(super) fn put(&mut self, element: Element<'a>, subtree: Subtree<'a>) {
        if subtree.is_nothing() {
            return;
        }
        let entry = FieldEntry { element, member: subtree.member, children: subtree.children };
        match self.entries.last().map(|last| last.element.cmp(&entry.element)) {
            None | Some(Ordering::Less) => self.entries.push(entry),
            Some(_) => match self.find(&entry.element) {
                Ok(at) => {
                    let known = &mut self.entries[at];
                    known.member |= entry.member;
                    known.children = std::mem::take(&mut known.children).union(entry.children);
                }
                Err(at) => self.entries.insert(at, entry),
            },
        }
    }

    fn find(&self, element: &Element<'_>) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.element.cmp(element))
    }

    /// The entry of an element.
    pub fn get(&self, element: &Element<'_>) -> Option<&FieldEntry<'a>> {
        self.find(element).ok().map(|at| &self.entries[at])
    }

    /// Whether the set contains a path.
    pub fn has(&self, path: &[Element<'_>]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, [])) => self.get(first).is_some_and(|entry| entry.member),
            Some((first, rest)) => self.get(first).is_some_and(|entry| entry.children.has(rest)),
        }
    }

    /// The union of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut entries = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut ours, mut theirs) =
            (self.entries.into_iter().peekable(), other.entries.into_iter().peekable());
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.element.cmp(&b.element),
            };
            let first = if order == Ordering::Greater { theirs.next() } else { ours.next() };
            let Some(mut entry) = first else { break };
            if order == Ordering::Equal
                && let Some(same) = theirs.next()
            {
                entry.member |= same.member;
                entry.children = entry.children.union(same.children);
            }
            entries.push(entry);
        }
        Self { entries }
    }

    /// Applies `change` to the entries that both sets have, and drops those that become empty.
    fn meet(
        &mut self,
        other: &FieldSet<'_>,
        keep_others: bool,
        change: impl Fn(&mut FieldEntry<'a>, &FieldEntry<'_>),
    ) {
        let mut theirs = other.entries.iter().peekable();
        self.entries.retain_mut(|entry| {
            while theirs.next_if(|their| their.element < entry.element).is_some() {}
            match theirs.peek().filter(|their| their.element == entry.element) {
                None => keep_others,
                Some(their) => {
                    change(entry, their);
                    entry.member || !entry.children.is_empty()
                }
            }
        });
    }

    /// The intersection of both sets.
    #[must_use]
    pub fn intersection(mut self, other: &FieldSet<'_>) -> Self {
        self.meet(other, false, |entry, their| {
            entry.member &= their.member;
            entry.children = std::mem::take(&mut entry.children).intersection(&their.children);
        });
        self
    }

    /// The paths of this set that are not in the other. Paths below a removed one stay.
    #[must_use]
    pub fn difference(mut self, other: &FieldSet<'_>) -> Self {
        self.meet(other, true, |entry, their| {
            entry.member &= !their.member;
            entry.children = std::mem::take(&mut entry.children).difference(&their.children);
        });
        self
    }

    /// The paths of this set that are neither in the other nor below one of its paths.
    #[must_use]
    pub fn without(mut self, other: &FieldSet<'_>) -> Self {
        self.meet(other, true, |entry, their| {
            if their.member {
                entry.member = false;
                entry.children = FieldSet::new();
            } else {
                entry.children = std::mem::take(&mut entry.children).without(&their.children);
            }
        });
        self
    }

    /// Keeps the entries for which `keep` returns true; `keep` may change them.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut FieldEntry<'a>) -> bool) {
        self.entries.retain_mut(|entry| keep(entry) && (entry.member || !entry.children.is_empty()));
    }

    /// Every path, sorted: the paths that end at a level before those that continue.
    pub fn paths(&self) -> Vec<Vec<Element<'a>>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, before: &mut Vec<Element<'a>>, out: &mut Vec<Vec<Element<'a>>>) {
        for entry in self.entries.iter().filter(|entry| entry.member) {
            let mut path = before.clone();
            path.push(entry.element.clone());
            out.push(path);
        }
        for entry in &self.entries {
            before.push(entry.element.clone());
            entry.children.collect(before, out);
            before.pop();
        }
    }
}

/// A path as messages show it.
pub fn path_text(path: &[Element<'_>]) -> String {
    path.iter().map(Element::to_string).collect()
}
