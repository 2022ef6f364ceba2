//! Declarations of values by a schema: the conversion from JSON, and size limits.

use std::sync::Arc;

use crate::{Type, types::ObjectType};

/// The list type of a schema, which defines `==` and `+`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListKind {
    /// An ordered list with duplicates.
    #[default]
    Atomic,
    /// An unordered list without duplicates.
    Set,
    /// An unordered list whose items are identified by these fields (JSON names).
    Map(Vec<Arc<str>>),
}

/// A type with the declarations of its schema. JSON values are converted by it when they are accessed.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The type for the checker.
    pub ty: Type,
    /// The maximum number of characters, bytes, items or entries; 0 for scalars.
    pub max_size: u64,
    /// The items of a list, or the values of a map.
    pub item: Option<Arc<Declared>>,
    /// The keys of a map.
    pub key: Option<Arc<Declared>>,
    /// The list type.
    pub list_kind: ListKind,
}

static DYN: Declared =
    Declared { ty: Type::Dyn, max_size: 0, item: None, key: None, list_kind: ListKind::Atomic };

impl Declared {
    /// A value without a schema, converted by its JSON type.
    pub fn dynamic() -> &'static Declared {
        &DYN
    }

    /// A value of a type without a size.
    pub fn scalar(ty: Type) -> Declared {
        Declared::sized(ty, 0)
    }

    /// A value (string, bytes or dynamic) with a maximum size.
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

    /// An object; `max_size` is the limit that a map in its place would have.
    pub fn object(object: ObjectType, max_size: u64) -> Declared {
        Declared::sized(Type::Object(Arc::new(object)), max_size)
    }

    /// The items or values, dynamic if undeclared.
    pub(crate) fn item(&self) -> &Declared {
        self.item.as_deref().unwrap_or(&DYN)
    }
}
