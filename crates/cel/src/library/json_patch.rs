//! Keys in the paths of JSON patches: `jsonpatch.escapeKey('k8s.io/my~label')`.

use super::cost;
use crate::{Library, Overload, Type};

/// The function.
pub fn library() -> Library {
    let id = "string_jsonpatch_escapeKey_string";
    Library::new()
        .function(
            "jsonpatch.escapeKey",
            [Overload::global(id, [Type::String], Type::String, |_, args| {
                Ok(args[0].as_str()?.replace('~', "~0").replace('/', "~1").into())
            })],
        )
        .estimates("jsonpatch.escapeKey", cost::argument_kept)
        .costs("jsonpatch.escapeKey", cost::argument_run)
}
