//! Where a value is, written out only when something is wrong with it.

use std::fmt;

/// A place in an object, as a list from the inside out.
pub struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Field(&'a str),
    /// A key of a map: as a field, or in brackets.
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    /// A field of what is at `parent`; of the object itself where there is none.
    pub fn field(parent: Option<&'a At<'a>>, name: &'a str) -> Self {
        Self { parent, step: Step::Field(name) }
    }

    /// A key of a map, which is shown in brackets.
    pub fn key(parent: Option<&'a At<'a>>, name: &'a str) -> Self {
        Self { parent, step: Step::Key(name) }
    }

    /// An item of a list.
    pub fn index(parent: Option<&'a At<'a>>, index: usize) -> Self {
        Self { parent, step: Step::Index(index) }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Field(name) if self.parent.is_none() => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Key(name) => write!(f, "[{name}]"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The text of a place; that of the object itself is what Go writes for no path.
pub fn shown(at: Option<&At<'_>>) -> String {
    at.map_or_else(|| "<nil>".to_owned(), ToString::to_string)
}
