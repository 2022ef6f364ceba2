//! Protobuf primitives: varints, tags and lengths, decoded from untrusted bytes and encoded to a buffer.

/// The reason why a message is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Unexpected end of input.
    #[error("unexpected EOF")]
    Truncated,
    /// A varint of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length that exceeds the address space.
    #[error("proto: negative length found during unmarshaling")]
    Length,
    /// A field with an unexpected wire type.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WireType {
        /// The wire type on the wire.
        wire_type: u8,
        /// Its name in Go.
        field: String,
    },
    /// An unknown wire type.
    #[error("proto: illegal wireType {0}")]
    NoWireType(u8),
    /// An end of a group without its start.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndGroup(String),
    /// An invalid tag.
    #[error("proto: {message}: illegal tag {tag} (wire type {wire_type})")]
    Tag {
        /// The message with the tag.
        message: String,
        /// The tag.
        tag: u64,
        /// The wire type of the tag.
        wire_type: u8,
    },
    /// The nesting limit is exceeded.
    #[error("proto: exceeded max depth")]
    Depth,
    /// An embedded object is not JSON, or a quantity is invalid.
    #[error("{0}")]
    Value(String),
}

/// The value of a field, by wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

impl Wire<'_> {
    pub fn wire_type(self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        }
    }
}

/// The remaining bytes.
#[derive(Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next field of a message named `message`, `None` at its end. Groups are skipped: no message uses them.
    pub fn field(&mut self, message: &str) -> Result<Option<(u32, Wire<'a>)>, Malformed> {
        while !self.0.is_empty() {
            let key = self.varint()?;
            let (tag, wire_type) = (key >> 3, (key & 7) as u8);
            if wire_type == 4 {
                return Err(Malformed::EndGroup(message.to_owned()));
            }
            let known = u32::try_from(tag).ok().filter(|tag| (1..1 << 29).contains(tag));
            let Some(tag) = known else {
                return Err(Malformed::Tag { message: message.to_owned(), tag, wire_type });
            };
            if wire_type == 3 {
                self.skip_group()?;
                continue;
            }
            return Ok(Some((tag, self.value(wire_type)?)));
        }
        Ok(None)
    }

    fn value(&mut self, wire_type: u8) -> Result<Wire<'a>, Malformed> {
        match wire_type {
            0 => self.varint().map(Wire::Varint),
            1 => {
                let (bytes, rest) = self.0.split_first_chunk::<8>().ok_or(Malformed::Truncated)?;
                self.0 = rest;
                Ok(Wire::Fixed64(u64::from_le_bytes(*bytes)))
            }
            2 => {
                let length = self.varint()?;
                let length = i64::try_from(length).map_err(|_| Malformed::Length)?;
                let length = usize::try_from(length).map_err(|_| Malformed::Length)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed::Truncated)?;
                self.0 = rest;
                Ok(Wire::Bytes(bytes))
            }
            5 => {
                self.0 = self.0.get(4..).ok_or(Malformed::Truncated)?;
                Ok(Wire::Fixed32)
            }
            other => Err(Malformed::NoWireType(other)),
        }
    }

    /// Counts levels instead of recursing: nested groups cannot exhaust the stack.
    fn skip_group(&mut self) -> Result<(), Malformed> {
        let mut open = 1usize;
        while open > 0 {
            match (self.varint()? & 7) as u8 {
                3 => open += 1,
                4 => open -= 1,
                wire_type => {
                    self.value(wire_type)?;
                }
            }
        }
        Ok(())
    }

    pub fn varint(&mut self) -> Result<u64, Malformed> {
        if let Some((&byte, rest)) = self.0.split_first()
            && byte < 0x80
        {
            self.0 = rest;
            return Ok(u64::from(byte));
        }
        let mut value = 0u64;
        for shift in (0..).step_by(7) {
            if shift >= 64 {
                return Err(Malformed::Overflow);
            }
            let (&byte, rest) = self.0.split_first().ok_or(Malformed::Truncated)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn put_key(out: &mut Vec<u8>, tag: u32, wire_type: u8) {
    put_varint(out, u64::from(tag) << 3 | u64::from(wire_type));
}

pub fn put_int(out: &mut Vec<u8>, tag: u32, value: i64) {
    put_key(out, tag, 0);
    put_varint(out, value.cast_unsigned());
}

pub fn put_double(out: &mut Vec<u8>, tag: u32, value: f64) {
    put_key(out, tag, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

pub fn put_bytes(out: &mut Vec<u8>, tag: u32, value: &[u8]) {
    put_key(out, tag, 2);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Encodes a message and then its length prefix.
pub fn put_message(out: &mut Vec<u8>, tag: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = begin(out, tag);
    write(out);
    end(out, start);
}

/// Starts a message of unknown length and returns its position for [`end`]. It reserves one byte for the length, as
/// most messages are short.
pub fn begin(out: &mut Vec<u8>, tag: u32) -> usize {
    put_key(out, tag, 2);
    out.push(0);
    out.len()
}

/// Ends a message: inserts its length.
pub fn end(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if length < 0x80 {
        out[start - 1] = length as u8;
        return;
    }
    let digits = (length.ilog2() / 7 + 1) as usize;
    let more = digits - 1;
    out.resize(start + length + more, 0);
    out.copy_within(start..start + length, start + more);
    for (at, byte) in out[start - 1..start + more].iter_mut().enumerate() {
        let goes_on = if at < more { 0x80 } else { 0 };
        *byte = (length >> (7 * at)) as u8 & 0x7f | goes_on;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_varint_survives_a_round_trip(value: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.0.is_empty());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader(&bytes);
            while let Ok(Some(_)) = reader.field("X") {}
        }
    }

    #[test]
    fn a_message_gets_its_length_in_front() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 20_000] {
            let mut out = vec![7];
            put_message(&mut out, 3, |out| out.extend(std::iter::repeat_n(9, length)));
            let mut reader = Reader(&out[1..]);
            assert_eq!(reader.field("X"), Ok(Some((3, Wire::Bytes(vec![9; length].as_slice())))));
            assert_eq!(reader.field("X"), Ok(None));
        }
    }

    #[test]
    fn groups_are_skipped_at_any_depth() {
        let mut bytes = vec![0x0b; 100_000];
        bytes.extend(vec![0x0c; 100_000]);
        bytes.extend([0x08, 0x05]);
        assert_eq!(Reader(&bytes).field("X"), Ok(Some((1, Wire::Varint(5)))));
        assert_eq!(Reader(&bytes[..150_000]).field("X"), Err(Malformed::Truncated));
        assert_eq!(Reader(&[0x0c]).field("X"), Err(Malformed::EndGroup("X".to_owned())));
    }
}
