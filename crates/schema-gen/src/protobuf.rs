//! Reads from k8s-pb the tags of every message, and the markers in Go's comments.

use std::collections::HashMap;

use syn::{Attribute, Expr, GenericArgument, Item, Lit, Meta, PathArguments};

use crate::sources::File;

/// Messages by folder and name, in lower case because prost changes the case.
pub struct Messages(HashMap<String, Message>);

pub struct Message {
    /// The name that prost generates.
    pub name: String,
    pub fields: Vec<Field>,
    pub markers: Markers,
}

pub struct Field {
    /// The name as [`fold`] returns it.
    pub folded: String,
    pub tag: u32,
    /// The message type of the field or of its items.
    pub message: Option<String>,
    pub markers: Markers,
}

/// The `+key=value` lines of a comment.
pub struct Markers(Vec<(String, String)>);

impl Markers {
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(marker, _)| marker == key)
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(marker, _)| marker == key).map(|(_, value)| value.as_str())
    }

    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(marker, _)| marker == key).map(|(_, value)| value.as_str())
    }
}

impl Messages {
    /// The message of the type with this OpenAPI name.
    pub fn of(&self, name: &str) -> Option<&Message> {
        let path = name.strip_prefix("io.k8s.")?.replace('-', "_").replace('.', "/");
        self.0.get(&path.to_lowercase())
    }

    /// The message type of a field.
    pub fn referred(&self, field: &Field) -> Option<&Message> {
        self.0.get(field.message.as_ref()?)
    }
}

/// A name for comparison: letters and digits in lower case, because JSON and Rust differ in the rest.
pub fn fold(name: &str) -> String {
    name.trim_start_matches("r#")
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_lowercase()
}

/// Reads all messages.
pub fn read(files: &[File]) -> Result<Messages, String> {
    let mut messages = HashMap::new();
    for file in files {
        for item in &file.syntax.items {
            let Item::Struct(item) = item else { continue };
            let name = item.ident.to_string();
            let fields: Result<Vec<Field>, String> =
                item.fields.iter().map(|f| field(&file.folder, f)).collect();
            let fields = fields.map_err(|problem| format!("{}/{name}: {problem}", file.folder))?;
            let path = format!("{}/{name}", file.folder).to_lowercase();
            messages.insert(path, Message { name, fields, markers: markers(&item.attrs) });
        }
    }
    Ok(Messages(messages))
}

fn field(folder: &str, field: &syn::Field) -> Result<Field, String> {
    let name = field.ident.as_ref().ok_or("a field without a name")?.to_string();
    let attribute = field.attrs.iter().find(|attribute| attribute.path().is_ident("prost"));
    let attribute = attribute.and_then(|attribute| attribute.meta.require_list().ok()).ok_or("no tag")?;
    let text = attribute.tokens.to_string();
    let tag = text
        .split_once("tag = \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .and_then(|(tag, _)| tag.parse().ok());
    let tag = tag.ok_or_else(|| format!("no tag in {text}"))?;
    let message = text.contains("message").then(|| resolve(folder, &field.ty)).flatten();
    Ok(Field { folded: fold(&name), tag, message, markers: markers(&field.attrs) })
}

/// The innermost type within `Option`, `Vec`, `Box` and `BTreeMap`, as folder and name in lower case.
fn resolve(folder: &str, of: &syn::Type) -> Option<String> {
    let syn::Type::Path(of) = of else { return None };
    let last = of.path.segments.last()?;
    if let PathArguments::AngleBracketed(arguments) = &last.arguments
        && let Some(GenericArgument::Type(inner)) = arguments.args.last()
    {
        return resolve(folder, inner);
    }
    let mut parts: Vec<String> = folder.split('/').map(str::to_owned).collect();
    for segment in &of.path.segments {
        if segment.ident == "super" {
            parts.pop()?;
        } else {
            parts.push(segment.ident.to_string());
        }
    }
    Some(parts.join("/").to_lowercase())
}

fn markers(attributes: &[Attribute]) -> Markers {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let marker = |line: String| {
        let line = line.trim().strip_prefix('+')?;
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        Some((key.to_owned(), value.trim().to_owned()))
    };
    Markers(lines.filter_map(marker).collect())
}
