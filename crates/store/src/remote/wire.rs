//! Values as bytes: numbers in little endian, texts and lists behind their length, fields in order.

use std::time::Duration;

use bytes::{Buf, Bytes};
use model::selector::{Requirement, Target, Test};
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};

use crate::engine::{Bound, Changes, Committed, Sweep};
use crate::history::decide::{Identity, ObservedHistory, Record};
use crate::types::{
    Action, Change, ClockState, Error, ListQuery, Page, Position, Precondition, Stored, Write, Written,
};

/// A value that can be sent. Malformed bytes are refused, never a panic.
pub trait Wire: Sized {
    /// Appends it to `out`.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads it from the front.
    fn pull(input: &mut Bytes) -> Option<Self>;
}

impl Wire for () {
    fn put(&self, _: &mut Vec<u8>) {}

    fn pull(_: &mut Bytes) -> Option<Self> {
        Some(())
    }
}

impl Wire for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        input.has_remaining().then(|| input.get_u8())
    }
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        (input.remaining() >= 8).then(|| input.get_u64_le())
    }
}

impl Wire for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        u64::pull(input)?.try_into().ok()
    }
}

impl Wire for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        self.cast_unsigned().put(out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        u64::pull(input).map(u64::cast_signed)
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        match u8::pull(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.len().put(out);
    out.extend_from_slice(bytes);
}

impl Wire for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self, out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        let length = usize::pull(input)?;
        (input.remaining() >= length).then(|| input.split_to(length))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        String::from_utf8(Bytes::pull(input)?.into()).ok()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        Some(if bool::pull(input)? { Some(T::pull(input)?) } else { None })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for item in self {
            item.put(out);
        }
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        let count = usize::pull(input)?;
        // Every item takes at least a byte: a count beyond that is malformed, and no reason to allocate.
        let mut items = Vec::with_capacity(count.min(input.remaining()).min(1024));
        for _ in 0..count {
            items.push(T::pull(input)?);
        }
        Some(items)
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(value) => value.put(out),
            Err(error) => error.put(out),
        }
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        Some(if bool::pull(input)? { Ok(T::pull(input)?) } else { Err(E::pull(input)?) })
    }
}

/// A struct is its fields, in order.
macro_rules! fields {
    ($($type:ident { $($field:tt),* })*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn pull(input: &mut Bytes) -> Option<Self> {
                Some(Self { $($field: Wire::pull(input)?),* })
            }
        }
    )*};
}

fields! {
    Revision { 0 }
    Uid { 0 }
    ObjectKey { resource, namespace, name }
    Selector { requirements }
    Requirement { target, key, test }
    Precondition { revision, uid }
    Written { revision, value }
    Stored { key, revision, uid, value, version_at }
    Position { namespace, name }
    ListQuery { resource, namespace, selector, at, after, limit }
    Page { revision, items, more, total }
    Change { revision, key, uid, action, previous, attributes, previous_attributes, value, version_at }
    ClockState { current, compacted }
    Committed { outcomes, changes }
    Bound { changes, bytes }
    Changes { changes, through }
    Identity { system, timeline, relation }
    Record { revision, uid, value }
    ObservedHistory { identity, stamped, incarnation, clock, record }
}

/// An enum is the number of its variant, then the fields of that.
macro_rules! variants {
    ($($type:ident { $($number:literal => $variant:ident $({ $($field:ident),* })? $(($value:ident))?,)* })*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(($value))? => {
                        out.push($number);
                        $($($field.put(out);)*)?
                        $($value.put(out);)?
                    })*
                }
            }

            fn pull(input: &mut Bytes) -> Option<Self> {
                Some(match u8::pull(input)? {
                    $($number => Self::$variant
                        $({ $($field: Wire::pull(input)?),* })?
                        $(({ let $value = Wire::pull(input)?; $value }))?,)*
                    _ => return None,
                })
            }
        }
    )*};
}
pub(super) use variants;

variants! {
    Target {
        0 => Label,
        1 => Field,
    }
    Test {
        0 => In(values),
        1 => NotIn(values),
        2 => Exists,
        3 => NotExists,
        4 => GreaterThan(bound),
        5 => LessThan(bound),
    }
    Write {
        0 => Create { key, uid, attributes, body },
        1 => Update { key, expect, attributes, body },
        2 => Delete { key, expect, attributes, body },
        3 => Require { key, expect, selector },
    }
    Action {
        1 => Create,
        2 => Update,
        3 => Delete,
    }
    Sweep {
        0 => Done,
        1 => More,
        2 => Busy,
    }
    Error {
        0 => AlreadyExists { key },
        1 => NotFound { key },
        2 => Conflict { key, actual_revision, actual_uid },
        3 => Expired { requested, compacted },
        4 => Future { requested, current },
        5 => Unavailable { reason },
        6 => Corrupt { reason },
        7 => Open { reason },
        8 => TooLarge { key, reason },
        9 => OutcomeUnknown { reason },
    }
}

impl Wire for Resource {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_str().as_bytes(), out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        std::str::from_utf8(&Bytes::pull(input)?).ok().map(Self::from_text)
    }
}

impl Wire for Attributes {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(&self.to_bytes(), out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        Self::from_bytes(&Bytes::pull(input)?)
    }
}

impl Wire for Encoded {
    fn put(&self, out: &mut Vec<u8>) {
        let (before, after) = self.around_revision();
        put_bytes(before, out);
        put_bytes(after, out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        let before = Bytes::pull(input)?;
        let after = Bytes::pull(input)?;
        Some(Self::from_around(before.into(), after.into()))
    }
}

impl Wire for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX).put(out);
    }

    fn pull(input: &mut Bytes) -> Option<Self> {
        u64::pull(input).map(Self::from_millis)
    }
}
