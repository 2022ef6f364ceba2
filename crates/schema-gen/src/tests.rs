//! The table that two miniature dependencies and some facts produce.

use crate::{facts, join, openapi, protobuf, sources::File};

const OPENAPI: &str = r#"
impl crate::schemars::JsonSchema for Probe {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "io.k8s.api.core.v1.Probe".into()
    }
    fn json_schema(__gen: &mut crate::schemars::SchemaGenerator) -> crate::schemars::Schema {
        crate::schemars::json_schema!({
            "description": "prose",
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "extra": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
                "httpGet": ({
                    let mut schema_obj = __gen.subschema_for::<crate::api::core::v1::Get>();
                    schema_obj.ensure_object().insert("description".into(), "prose".into());
                    schema_obj
                }),
                "kind": {"type": "string"},
                "metadata": __gen.subschema_for::<crate::api::core::v1::Get>(),
                "mode": {"type": "string"},
                "ports": {"type": "array", "items": {"type": "integer", "format": "int32"}},
                "x-list-type": {"type": "string", "format": "byte"},
            },
            "required": ["metadata", "mode"],
        })
    }
}
impl crate::Resource for Probe {
    const GROUP: &'static str = "example.com";
    const VERSION: &'static str = "v1";
}
impl crate::schemars::JsonSchema for Get {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "io.k8s.api.core.v1.Get".into()
    }
    fn json_schema(__gen: &mut crate::schemars::SchemaGenerator) -> crate::schemars::Schema {
        crate::schemars::json_schema!({"type": "object"})
    }
}"#;

const PROTOBUF: &str = r#"
pub struct Probe {
    #[prost(message, optional, tag = "1")]
    pub handler: ::core::option::Option<Handler>,
    /// +optional
    #[prost(message, optional, tag = "2")]
    pub metadata: ::core::option::Option<super::v1::Get>,
    #[prost(string, optional, tag = "3")]
    pub mode: ::core::option::Option<::prost::alloc::string::String>,
    /// Prose.
    /// +listType=map
    /// +listMapKey=a
    /// +listMapKey=b
    /// +patchStrategy=merge
    /// +patchMergeKey=a
    /// +default=[1]
    #[prost(int32, repeated, tag = "4")]
    pub ports: ::prost::alloc::vec::Vec<i32>,
    #[prost(bytes, optional, tag = "5")]
    pub x_list_type: ::core::option::Option<::prost::alloc::vec::Vec<u8>>,
    #[prost(btree_map = "string, message", tag = "6")]
    pub extra: ::prost::alloc::collections::BTreeMap<::prost::alloc::string::String, Extra>,
}
pub struct Handler {
    #[prost(message, optional, tag = "7")]
    pub http_get: ::core::option::Option<Get>,
}
pub struct Extra {
    #[prost(string, repeated, tag = "1")]
    pub items: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
/// +structType=atomic
pub struct GET {}"#;

fn table(facts: &str) -> Result<String, String> {
    let file = |text: &str| File { folder: "api/core/v1".to_owned(), syntax: syn::parse_str(text).unwrap() };
    let definitions = openapi::read(&[file(OPENAPI)])?;
    let messages = protobuf::read(&[file(PROTOBUF)])?;
    join::table(&definitions, &messages, &facts::read(facts)?)
}

#[test]
fn the_sources_are_joined() {
    let expected = "
package core/v1 io.k8s.api.core.v1
Get atomic
Probe example.com/v1 single
 +Handler #1
 extra {<string>} #6
 httpGet? Get #1.7
 metadata Get #2
 mode! string #3
 ports [int32] #4 map(a,b) ~merge(a) =[1]
 x-list-type bytes #5
";
    assert_eq!(table("").unwrap(), expected);
}

#[test]
fn facts_complete_the_sources() {
    let facts = "
# a comment
package core/v1
enum Mode A|B
Probe *
 httpGet!
 mode- string:Mode =\"A\"
 ports+ :v1.Ports
 x-list-type? string:types.UID
Own v1
 name string:Mode #1
";
    let expected = "
package core/v1 io.k8s.api.core.v1
Get atomic
Own v1
 name string:v1.Mode(A|B) #1
Probe *
 +Handler #1
 extra {<string>} #6
 httpGet! Get #1.7
 metadata Get #2
 mode- string:v1.Mode(A|B) #3 =\"A\"
 ports+ [int32] :v1.Ports #4 map(a,b) ~merge(a) =[1]
 x-list-type? bytes #5
";
    assert_eq!(table(facts).unwrap(), expected);
}

#[test]
fn facts_about_nothing_are_refused() {
    let problem = table("package core/v1\nProbe\n nothing?\n").unwrap_err();
    assert_eq!(problem, "io.k8s.api.core.v1.Probe: facts.txt describes the unknown field nothing");
    assert_eq!(table(" name\n").err().as_deref(), Some("facts.txt, line 1: a field without a type"));
    let problem = table("package other/v1\nOwn\n").unwrap_err();
    assert_eq!(problem, "no source has the OpenAPI name prefix of package other/v1");
}
