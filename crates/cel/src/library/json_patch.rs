//! Types and functions of mutating expressions: `Object{spec: Object.spec{replicas: 1}}`, `JSONPatch{op:
//! 'remove', path: '/spec'}`, and `jsonpatch.escapeKey('k8s.io/my~label')` for keys in patch paths.

use std::sync::Arc;

use super::cost;
use crate::{Declared, Field, Library, ObjectType, Overload, Type};

/// The type of an apply configuration.
pub const OBJECT: &str = "Object";

/// The type of a JSON patch operation.
pub fn operation_type() -> Type {
    let field = |name: &str, ty: Type| {
        let declared = Arc::new(Declared::scalar(ty));
        (Arc::from(name), Field { json_name: name.into(), declared })
    };
    let texts = ["op", "path", "from"].map(|name| field(name, Type::String));
    let fields = texts.into_iter().chain([field("value", Type::Dyn)]).collect();
    Type::Object(Arc::new(ObjectType { name: "JSONPatch".into(), fields }))
}

/// The library.
pub fn library() -> Library {
    let id = "string_jsonpatch_escapeKey_string";
    Library::new()
        .open_type(OBJECT)
        .named_type(operation_type())
        .function(
            "jsonpatch.escapeKey",
            [Overload::global(id, [Type::String], Type::String, |_, args| {
                Ok(args[0].as_str()?.replace('~', "~0").replace('/', "~1").into())
            })],
        )
        .estimates("jsonpatch.escapeKey", cost::argument_kept)
        .costs("jsonpatch.escapeKey", cost::argument_run)
}
