//! Reads from k8s-openapi the fields of every type, their shapes, which are required, and which types are
//! kinds.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Expr, ImplItem, Item, ItemImpl, Lit, LitStr};

use crate::sources::File;

/// A type with the fields in its OpenAPI schema.
#[derive(Default)]
pub struct Definition {
    /// By name.
    pub fields: BTreeMap<String, Field>,
    /// Group and version, if the type is a kind.
    pub group_version: Option<(String, String)>,
    /// Whether a list kind exists for the type.
    pub has_list: bool,
}

pub struct Field {
    pub shape: Shape,
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A shape with a word in the notation.
    Word(&'static str),
    /// The OpenAPI name of a type.
    Object(String),
    List(Box<Shape>),
    Map(Box<Shape>),
}

/// Types with a word in the notation: each is a Go type with its own JSON decoding.
const WORDS: [(&str, &str); 10] = [
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "fields"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "microtime"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "raw"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "intstr"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "json"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
        "JSONSchemaProps|[JSONSchemaProps]",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
        "JSONSchemaProps|bool",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
        "JSONSchemaProps|[string]",
    ),
];

/// Reads all types, by OpenAPI name.
pub fn read(files: &[File]) -> Result<BTreeMap<String, Definition>, String> {
    let mut names = BTreeMap::new();
    for_each_impl(files, |folder, of, item| {
        if trait_name(item) == "JsonSchema" {
            names.insert(path_in(folder, of), text_of(method(item, "schema_name")?).ok_or("no schema name")?);
        }
        Ok(())
    })?;
    let mut definitions: BTreeMap<String, Definition> = BTreeMap::new();
    for_each_impl(files, |folder, of, item| {
        let Some(name) = names.get(&path_in(folder, of)) else { return Ok(()) };
        if WORDS.iter().any(|(special, _)| special == name) {
            return Ok(());
        }
        let definition = definitions.entry(name.clone()).or_default();
        match trait_name(item).as_str() {
            "JsonSchema" => definition.fields = fields(&schema(method(item, "json_schema")?)?, &names)?,
            "Resource" => {
                definition.group_version = Some((constant(item, "GROUP")?, constant(item, "VERSION")?))
            }
            "ListableResource" => definition.has_list = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok(definitions)
}

/// Calls back with the folder, the type and the block of every trait implementation.
fn for_each_impl(
    files: &[File],
    mut call: impl FnMut(&str, &str, &ItemImpl) -> Result<(), String>,
) -> Result<(), String> {
    for file in files {
        for item in &file.syntax.items {
            if let Item::Impl(item) = item
                && item.trait_.is_some()
                && item.generics.params.is_empty()
                && let syn::Type::Path(of) = &*item.self_ty
                && let Some(of) = of.path.get_ident()
            {
                let of = of.to_string();
                call(&file.folder, &of, item)
                    .map_err(|problem| format!("{}/{of}: {problem}", file.folder))?;
            }
        }
    }
    Ok(())
}

fn path_in(folder: &str, name: &str) -> String {
    format!("{folder}/{name}")
}

fn trait_name(item: &ItemImpl) -> String {
    let segment = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
    segment.map(|segment| segment.ident.to_string()).unwrap_or_default()
}

fn method<'a>(item: &'a ItemImpl, name: &str) -> Result<&'a syn::Block, String> {
    let found = item.items.iter().find_map(|item| match item {
        ImplItem::Fn(function) if function.sig.ident == name => Some(&function.block),
        _ => None,
    });
    found.ok_or_else(|| format!("no method {name}"))
}

fn constant(item: &ItemImpl, name: &str) -> Result<String, String> {
    let found = item.items.iter().find_map(|item| match item {
        ImplItem::Const(constant) if constant.ident == name => match &constant.expr {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    found.ok_or_else(|| format!("no constant {name}"))
}

/// The text in `"text".into()`.
fn text_of(block: &syn::Block) -> Option<String> {
    match block.stmts.first()? {
        syn::Stmt::Expr(Expr::MethodCall(call), None) => match &*call.receiver {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The argument of `json_schema!`.
fn schema(block: &syn::Block) -> Result<Node, String> {
    let call = match block.stmts.first() {
        Some(syn::Stmt::Expr(Expr::Macro(call), None)) => &call.mac,
        Some(syn::Stmt::Macro(call)) => &call.mac,
        _ => return Err("no json_schema!".to_owned()),
    };
    node(&call.tokens.clone().into_iter().collect::<Vec<_>>())
}

/// A JSON schema in the macro's notation.
enum Node {
    Text(String),
    Object(BTreeMap<String, Node>),
    List(Vec<Node>),
    /// Folder and name of another type.
    Reference(String),
    /// Booleans and numbers, which do not affect the shape.
    Other,
}

impl Node {
    fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Object(entries) => entries.get(key),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Self::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Parses one value: a token tree, or an expression that refers to another type.
fn node(trees: &[TokenTree]) -> Result<Node, String> {
    match trees {
        [TokenTree::Literal(literal)] => {
            let text = syn::parse_str::<LitStr>(&literal.to_string());
            Ok(text.map_or(Node::Other, |text| Node::Text(text.value())))
        }
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Brace => object(group.stream()),
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Bracket => {
            entries(group.stream()).iter().map(|trees| node(trees)).collect::<Result<_, _>>().map(Node::List)
        }
        [TokenTree::Ident(_)] => Ok(Node::Other),
        _ => reference(trees.iter().cloned().collect()).map(Node::Reference),
    }
}

fn object(stream: TokenStream) -> Result<Node, String> {
    let entry = |trees: &Vec<TokenTree>| match &trees[..] {
        [key, TokenTree::Punct(colon), value @ ..] if colon.as_char() == ':' => {
            let Node::Text(key) = node(std::slice::from_ref(key))? else {
                return Err(format!("{key} is not a key"));
            };
            Ok((key, node(value)?))
        }
        _ => Err("an entry without a key".to_owned()),
    };
    entries(stream).iter().map(entry).collect::<Result<_, _>>().map(Node::Object)
}

/// Splits tokens at commas.
fn entries(stream: TokenStream) -> Vec<Vec<TokenTree>> {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let is_comma = |tree: &TokenTree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ',');
    trees.split(is_comma).filter(|entry| !entry.is_empty()).map(<[_]>::to_vec).collect()
}

/// The referenced type: `api/core/v1/Pod` for `…subschema_for::<crate::api::core::v1::Pod>()…`.
fn reference(stream: TokenStream) -> Result<String, String> {
    let text = flat(stream);
    let (_, rest) =
        text.split_once("subschema_for::<crate::").ok_or_else(|| format!("no reference: {text}"))?;
    let (path, _) = rest.split_once('>').ok_or("a reference without an end")?;
    Ok(path.replace("::", "/"))
}

/// The tokens as text without spaces.
fn flat(stream: TokenStream) -> String {
    let mut text = String::new();
    for tree in stream {
        match tree {
            TokenTree::Group(group) => text += &flat(group.stream()),
            other => text += &other.to_string(),
        }
    }
    text
}

fn fields(schema: &Node, names: &BTreeMap<String, String>) -> Result<BTreeMap<String, Field>, String> {
    let Some(Node::Object(properties)) = schema.get("properties") else { return Ok(BTreeMap::new()) };
    let required: Vec<&str> = match schema.get("required") {
        Some(Node::List(names)) => names
            .iter()
            .filter_map(|name| if let Node::Text(name) = name { Some(&**name) } else { None })
            .collect(),
        _ => Vec::new(),
    };
    let field = |(name, property): (&String, &Node)| {
        let shape = shape(property, names).map_err(|problem| format!("{name}: {problem}"))?;
        Ok((name.clone(), Field { shape, required: required.contains(&&**name) }))
    };
    properties.iter().map(field).collect()
}

fn shape(schema: &Node, names: &BTreeMap<String, String>) -> Result<Shape, String> {
    if let Node::Reference(path) = schema {
        let name = names.get(path).ok_or_else(|| format!("no type {path}"))?;
        let word = WORDS.iter().find(|(special, _)| special == name);
        return Ok(word.map_or_else(|| Shape::Object(name.clone()), |(_, word)| Shape::Word(word)));
    }
    let inner = |key: &str| schema.get(key).map(|inner| shape(inner, names)).transpose();
    Ok(match (schema.text("type"), schema.text("format")) {
        (Some("string"), None) => Shape::Word("string"),
        (Some("string"), Some("byte")) => Shape::Word("bytes"),
        (Some("boolean"), None) => Shape::Word("bool"),
        (Some("integer"), Some("int32")) => Shape::Word("int32"),
        (Some("integer"), Some("int64")) => Shape::Word("int64"),
        (Some("number"), Some("double")) => Shape::Word("double"),
        (Some("array"), None) => Shape::List(Box::new(inner("items")?.ok_or("a list of nothing")?)),
        (Some("object"), None) => {
            Shape::Map(Box::new(inner("additionalProperties")?.ok_or("a map of nothing")?))
        }
        (kind, format) => return Err(format!("type {kind:?}, format {format:?}")),
    })
}
