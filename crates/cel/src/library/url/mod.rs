//! The URL library: `url('https://example.com/')`.

mod parse;

use std::{collections::BTreeMap, sync::Arc};

use lexical::quote;

use self::parse::Url;
use super::cost;
use crate::{
    Error, Key, Library, Map, Opaque, Overload, Result, Type, Value,
    cost::{CallEstimate, CostEstimate, STRING_TRAVERSAL_FACTOR, SizeEstimate},
};

fn ty() -> Type {
    Type::object("kubernetes.URL")
}

impl Opaque for Url {
    fn ty(&self) -> Type {
        ty()
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        super::downcast::<Url>(other).is_some_and(|other| self.to_string() == other.to_string())
    }
}

/// The library.
pub fn library() -> Library {
    let part = |id, call: crate::Implementation| [Overload::member(id, [ty()], Type::String, call)];
    let query = Type::map(Type::String, Type::list(Type::String));
    let library = Library::new()
        .named_type(ty())
        .function(
            "url",
            [Overload::global("string_to_url", [Type::String], ty(), |_, args| {
                to_url(args[0].as_str()?).map(Value::opaque)
            })],
        )
        .function(
            "isURL",
            [Overload::global("is_url_string", [Type::String], Type::Bool, |_, args| {
                Ok(Url::parse_request(args[0].as_str()?).is_ok().into())
            })],
        )
        .function("getScheme", part("url_get_scheme", |_, args| text(&args[0], |url| url.scheme.clone())))
        .function("getHost", part("url_get_host", |_, args| text(&args[0], |url| lossy(&url.host))))
        .function(
            "getHostname",
            part("url_get_hostname", |_, args| text(&args[0], |url| lossy(url.hostname()))),
        )
        .function("getPort", part("url_get_port", |_, args| text(&args[0], |url| lossy(url.port()))))
        .function("getEscapedPath", part("url_get_escaped_path", |_, args| text(&args[0], Url::escaped_path)))
        .function(
            "getQuery",
            [Overload::member("url_get_query", [ty()], query, |_, args| {
                Ok(query_map(args[0].as_opaque::<Url>()?))
            })],
        );
    costs(library)
}

fn costs(mut library: Library) -> Library {
    for function in ["getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"] {
        library = library.estimates(function, cost::one).costs(function, cost::one_run);
    }
    library.estimates("url", cost::argument_kept).costs("url", cost::argument_run)
}

/// The estimated cost of comparing two URLs, if the size of either is known.
pub(super) fn equality(size: Option<SizeEstimate>) -> CallEstimate {
    let greatest = size.map_or(1, |size| size.max);
    CallEstimate::of(CostEstimate { min: 1, max: greatest }.scaled(STRING_TRAVERSAL_FACTOR))
}

/// Parses an absolute URL, or a path from the root.
fn to_url(text: &str) -> Result<Url> {
    let refused = |problem: String| {
        Error::new(format!("URL parse error during conversion from string: parse {}: {problem}", quote(text)))
    };
    Url::parse_request(text).map_err(refused)?;
    Url::parse(text).map_err(refused)
}

/// The reason why a text is neither an absolute URL nor a path from the root.
pub(super) fn problem(text: &str) -> Option<String> {
    let problem = Url::parse_request(text).err()?;
    Some(format!("parse {}: {problem}", quote(text)))
}

fn text<'a>(url: &Value<'a>, part: impl Fn(&Url) -> String) -> Result<Value<'a>> {
    Ok(part(url.as_opaque::<Url>()?).into())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn query_map<'a>(url: &Url) -> Value<'a> {
    let mut values = BTreeMap::<String, Vec<Value<'a>>>::new();
    for (key, value) in url.query() {
        values.entry(lossy(&key)).or_default().push(lossy(&value).into());
    }
    let entries = values.into_iter().map(|(key, values)| (Key::String(key.into()), Value::list(values)));
    Value::Map(Map::Owned(Arc::new(entries.collect())))
}
