//! A page of a list, split into the bytes of its items: each handler parses of them what it needs.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::objects::PageMetadata;
use crate::{Error, Result};

/// The items of a list and where it continues.
#[derive(Debug, Default)]
pub(super) struct ListPage<'a> {
    pub(super) metadata: PageMetadata,
    pub(super) items: Vec<&'a [u8]>,
}

impl<'a> ListPage<'a> {
    /// Splits the text of a list.
    pub(super) fn split(text: &'a [u8]) -> Result<Self> {
        let mut page = Self::default();
        let mut rest = Rest(text);
        rest.expect(b'{')?;
        while !rest.ends(b'}')? {
            let field: String = rest.value()?.1;
            rest.expect(b':')?;
            match field.as_str() {
                "metadata" => page.metadata = rest.value()?.1,
                "items" if rest.first() == Some(b'[') => {
                    rest.expect(b'[')?;
                    while !rest.ends(b']')? {
                        page.items.push(rest.value::<IgnoredAny>()?.0);
                    }
                }
                // Nothing else in a list matters; a list without items may say `null`.
                _ => drop(rest.value::<IgnoredAny>()?),
            }
        }
        Ok(page)
    }
}

/// The part of a text that has not been split yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// The next byte that is no white space.
    fn first(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.first() != Some(byte) {
            return Err(Error::other(format!("a list has no {:?} where it needs one", char::from(byte))));
        }
        self.0 = &self.0[1..];
        Ok(())
    }

    /// Steps over the end of an object or array, if it is there, or over the comma before the next value.
    fn ends(&mut self, byte: u8) -> Result<bool> {
        if self.first() == Some(b',') {
            self.0 = &self.0[1..];
        }
        let is_end = self.first() == Some(byte);
        if is_end {
            self.0 = &self.0[1..];
        }
        Ok(is_end)
    }

    /// The bytes of the next value, and what they say.
    fn value<T: Deserialize<'a>>(&mut self) -> Result<(&'a [u8], T)> {
        self.first();
        let mut values = serde_json::Deserializer::from_slice(self.0).into_iter::<T>();
        let value = values.next().ok_or_else(|| Error::other("a list ends in the middle"))??;
        let (bytes, rest) = self.0.split_at(values.byte_offset());
        self.0 = rest;
        Ok((bytes, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_wherever_its_metadata_is() {
        for text in [
            r#"{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"c"},"items":[{"a":"]},{"},{}]}"#,
            " { \"items\" : [ {\"a\":\"]},{\"} , {} ] ,\n\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"c\"}, \"x\":1 }\n",
        ] {
            let page = ListPage::split(text.as_bytes()).unwrap();
            let items: Vec<_> = page.items.iter().map(|item| String::from_utf8_lossy(item)).collect();
            assert_eq!(items, [r#"{"a":"]},{"}"#, "{}"], "{text}");
            let metadata = (&*page.metadata.resource_version, &*page.metadata.continue_token);
            assert_eq!(metadata, ("7", "c"), "{text}");
        }
        let empty = ListPage::split(br#"{"items":null,"metadata":{"resourceVersion":"7"}}"#).unwrap();
        assert!(empty.items.is_empty());
    }

    #[test]
    fn a_text_that_is_no_list_is_refused() {
        for text in
            ["", "[]", "{", r#"{"items":[{}"#, r#"{"items":[{"a":]}"#, r#"{"items" [] }"#, r#"{"items":[{} "#]
        {
            assert!(ListPage::split(text.as_bytes()).is_err(), "{text}");
        }
    }
}
