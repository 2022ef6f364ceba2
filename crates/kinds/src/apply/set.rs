//! Sets of fields: trees of path elements, each of which may be a member itself.

use std::cmp::Ordering;

use super::element::Element;

/// A set of paths. The empty path is in none: nobody owns "the object".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet<'a> {
    /// Sorted; each is a member or has children.
    entries: Vec<Entry<'a>>,
}

/// What a set has at one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The last element of the path.
    pub element: Element<'a>,
    /// Whether the path that ends here is in the set.
    pub member: bool,
    /// The paths that go on from here.
    pub children: FieldSet<'a>,
}

/// What a walk found at a place whose element only its caller knows.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub member: bool,
    pub children: FieldSet<'a>,
}

impl Part<'_> {
    pub const MEMBER: Self = Self { member: true, children: FieldSet { entries: Vec::new() } };

    /// Whether nothing was found.
    pub fn is_nothing(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl<'a> FieldSet<'a> {
    /// The empty set.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The empty set, with room for so many entries.
    pub(super) fn with_room(entries: usize) -> Self {
        Self { entries: Vec::with_capacity(entries) }
    }

    /// The set of one path.
    pub fn of(path: &[Element<'a>]) -> Self {
        let Some((first, rest)) = path.split_first() else { return Self::new() };
        let (element, member) = (first.clone(), rest.is_empty());
        Self { entries: vec![Entry { element, member, children: Self::of(rest) }] }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is there, sorted.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// Puts parts together that come in any order.
    pub(super) fn of_parts(mut parts: Vec<(Element<'a>, Part<'a>)>) -> Self {
        parts.sort_by(|a, b| a.0.cmp(&b.0));
        let mut set = Self { entries: Vec::with_capacity(parts.len()) };
        parts.into_iter().for_each(|(element, part)| set.put(element, part));
        set
    }

    /// Puts a part at an element; most often it comes after all others.
    pub(super) fn put(&mut self, element: Element<'a>, part: Part<'a>) {
        if part.is_nothing() {
            return;
        }
        let entry = Entry { element, member: part.member, children: part.children };
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

    /// What the set has at an element.
    pub fn get(&self, element: &Element<'_>) -> Option<&Entry<'a>> {
        self.find(element).ok().map(|at| &self.entries[at])
    }

    /// Whether a path is in it.
    pub fn has(&self, path: &[Element<'_>]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, [])) => self.get(first).is_some_and(|entry| entry.member),
            Some((first, rest)) => self.get(first).is_some_and(|entry| entry.children.has(rest)),
        }
    }

    /// What is in this set, in the other, or in both.
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

    /// Goes through the entries that both sets have, and keeps what is left of them.
    fn meet(&mut self, other: &FieldSet<'_>, keep_others: bool, change: impl Fn(&mut Entry<'a>, &Entry<'_>)) {
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

    /// What is in both sets.
    #[must_use]
    pub fn intersection(mut self, other: &FieldSet<'_>) -> Self {
        self.meet(other, false, |entry, their| {
            entry.member &= their.member;
            entry.children = std::mem::take(&mut entry.children).intersection(&their.children);
        });
        self
    }

    /// What is in this set and not in the other. What lies below a path is not taken with it.
    #[must_use]
    pub fn difference(mut self, other: &FieldSet<'_>) -> Self {
        self.meet(other, true, |entry, their| {
            entry.member &= !their.member;
            entry.children = std::mem::take(&mut entry.children).difference(&their.children);
        });
        self
    }

    /// What is in this set and neither in the other nor below a path of it.
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

    /// Keeps the entries for which this holds, and what it leaves of them.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut Entry<'a>) -> bool) {
        self.entries.retain_mut(|entry| keep(entry) && (entry.member || !entry.children.is_empty()));
    }

    /// Every path, those that end at a level before those that go on from it.
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

/// A path in the words of messages.
pub fn path_text(path: &[Element<'_>]) -> String {
    path.iter().map(Element::to_string).collect()
}
