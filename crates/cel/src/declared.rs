//! What a schema says about a value beyond its type: how JSON becomes one, and how large it may be.

use std::sync::Arc;

use crate::{Type, types::ObjectType};

/// How the items of a list stand to each other, which decides what `==` and `+` mean for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListKind {
    /// In order, with repetitions.
    #[default]
    Atomic,
    /// Without order and repetitions.
    Set,
    /// Without order; items with the same values in these fields (names in JSON) are the same item.
    Map(Vec<Arc<str>>),
}

/// A type with what a schema knows beyond it. Values of JSON are read by it when they are reached.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The type that the checker sees.
    pub ty: Type,
    /// The greatest number of characters, bytes, items or entries; nothing for what has no size.
    pub max_size: u64,
    /// Of a list: what it holds. Of a map: its values.
    pub item: Option<Arc<Declared>>,
    /// Of a map: its keys.
    pub key: Option<Arc<Declared>>,
    /// Of a list: how its items stand to each other.
    pub list_kind: ListKind,
}

static DYN: Declared =
    Declared { ty: Type::Dyn, max_size: 0, item: None, key: None, list_kind: ListKind::Atomic };

impl Declared {
    /// Something of which nothing is known. JSON becomes what it looks like.
    pub fn dynamic() -> &'static Declared {
        &DYN
    }

    /// A value of a type that has no size.
    pub fn scalar(ty: Type) -> Declared {
        Declared::sized(ty, 0)
    }

    /// A value (text, bytes, or dynamic) with a greatest size.
    pub fn sized(ty: Type, max_size: u64) -> Declared {
        Declared { ty, max_size, item: None, key: None, list_kind: ListKind::Atomic }
    }

    /// A list of at most `max_size` items.
    pub fn list(item: Arc<Declared>, max_size: u64, list_kind: ListKind) -> Declared {
        let ty = Type::list(item.ty.clone());
        Declared { ty, max_size, item: Some(item), key: None, list_kind }
    }

    /// A map of at most `max_size` entries.
    pub fn map(key: Arc<Declared>, item: Arc<Declared>, max_size: u64) -> Declared {
        let ty = Type::map(key.ty.clone(), item.ty.clone());
        Declared { ty, max_size, item: Some(item), key: Some(key), list_kind: ListKind::Atomic }
    }

    /// An object; `max_size` is what a map in its place would have.
    pub fn object(object: ObjectType, max_size: u64) -> Declared {
        Declared::sized(Type::Object(Arc::new(object)), max_size)
    }

    /// What the values of a list or map are, dynamic where nobody said.
    pub(crate) fn item(&self) -> &Declared {
        self.item.as_deref().unwrap_or(&DYN)
    }
}
