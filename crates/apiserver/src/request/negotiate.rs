//! Content negotiation: the form of responses and the encoding of bodies.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use model::error::Error;

/// The media type of JSON.
pub const JSON: &str = "application/json";
/// The media type of YAML.
pub const YAML: &str = "application/yaml";
/// The media type of Kubernetes' protobuf envelope.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// An encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

impl Encoding {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => YAML,
            Self::Protobuf => PROTOBUF,
        }
    }

    fn from_media_type(text: &str) -> Option<Self> {
        match text {
            JSON => Some(Self::Json),
            YAML | "application/x-yaml" => Some(Self::Yaml),
            PROTOBUF => Some(Self::Protobuf),
            _ => None,
        }
    }
}

/// The representation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Representation {
    /// The whole object.
    Whole,
    /// A table, as `kubectl get` prints it.
    Table,
    /// Its metadata only.
    Metadata,
}

/// The negotiated form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The encoding.
    pub encoding: Encoding,
    /// The representation.
    pub view: Representation,
    /// Whether JSON is indented.
    pub pretty: bool,
}

impl Form {
    /// Whole objects as compact JSON, as they are stored.
    pub const STORED: Self = Self { encoding: Encoding::Json, view: Representation::Whole, pretty: false };
}

/// The available forms of a response.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Whether protobuf is available (never for custom resources).
    pub protobuf: bool,
    /// Whether tables are available.
    pub tables: bool,
    /// Whether metadata alone is available.
    pub metadata: bool,
}

impl Offer {
    /// All encodings of the whole object.
    pub const WHOLE: Self = Self { protobuf: true, tables: false, metadata: false };

    /// The media types in error messages.
    pub fn media_types(self) -> Vec<String> {
        let mut all = vec![JSON.to_owned(), YAML.to_owned()];
        if self.protobuf {
            all.push(PROTOBUF.to_owned());
        }
        all
    }

    /// Metadata has a protobuf form for every type, tables have none.
    fn has(self, encoding: Encoding, view: Representation) -> bool {
        match view {
            Representation::Whole => self.protobuf || encoding != Encoding::Protobuf,
            Representation::Metadata => self.metadata,
            Representation::Table => self.tables && encoding != Encoding::Protobuf,
        }
    }
}

/// Negotiates the form by the `Accept` header: the first clause that is available. Only lists may be streams.
pub fn accepted(headers: &HeaderMap, offer: Offer, streams: bool, pretty: bool) -> Result<Form, Error> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let plain = Form { encoding: Encoding::Json, view: Representation::Whole, pretty };
    if accept.trim().is_empty() {
        return Ok(plain);
    }
    let clauses = clauses(headers);
    let known = |clause: &Clause<'_>| {
        clause.media_type == "*/*" || Encoding::from_media_type(clause.media_type).is_some()
    };
    if !clauses.iter().any(known) {
        let mut available = offer.media_types();
        if streams {
            let watched = [JSON, PROTOBUF].into_iter().filter(|name| offer.protobuf || *name == JSON);
            available.extend(watched.map(|name| format!("{name};stream=watch")));
        }
        return Err(Error::NoRepresentation { available });
    }
    for clause in clauses {
        let Some(view) = clause.view() else { continue };
        if let Some(encoding) = clause.encoding().filter(|encoding| offer.has(*encoding, view)) {
            return Ok(Form { encoding, view, pretty });
        }
    }
    Err(Error::NotAcceptable { accepted: Offer::WHOLE.media_types() })
}

/// The clauses of the `Accept` header, by preference.
pub(crate) fn clauses(headers: &HeaderMap) -> Vec<Clause<'_>> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// The encoding of a request body. Without a `Content-Type` it is JSON.
pub fn body_encoding(headers: &HeaderMap, offer: Offer) -> Result<Encoding, Error> {
    let given = content_type(headers);
    if given.is_empty() && headers.get(CONTENT_TYPE).is_none_or(HeaderValue::is_empty) {
        return Ok(Encoding::Json);
    }
    Encoding::from_media_type(given)
        .filter(|encoding| offer.has(*encoding, Representation::Whole))
        .ok_or_else(|| Error::UnsupportedMediaType { accepted: offer.media_types() })
}

/// The media type of a request body without parameters; empty if absent.
pub fn content_type(headers: &HeaderMap) -> &str {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    text.split(';').next().unwrap_or("").trim()
}

/// One clause of an `Accept` header.
pub(crate) struct Clause<'a> {
    pub media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or("");
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.iter().find(|(key, _)| *key == "q");
        let quality = quality.and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
        Self { media_type, parameters, quality }
    }

    /// The encoding of the clause, if it is known. A clause of quality 0 is a last resort.
    pub fn encoding(&self) -> Option<Encoding> {
        match self.media_type {
            "*/*" | "application/*" => Some(Encoding::Json),
            other => Encoding::from_media_type(other),
        }
    }

    /// Whether the clause names another representation.
    pub fn converts(&self) -> bool {
        ["as", "g", "v"].iter().any(|key| !self.parameter(key).is_empty())
    }

    pub fn parameter(&self, key: &str) -> &'a str {
        self.parameters.iter().find(|(k, _)| *k == key).map_or("", |(_, value)| value)
    }

    /// `None` if the representation is unknown.
    fn view(&self) -> Option<Representation> {
        let known = self.parameter("g") == "meta.k8s.io" && matches!(self.parameter("v"), "v1" | "v1beta1");
        match self.parameter("as") {
            "" if !self.converts() => Some(Representation::Whole),
            "Table" if known => Some(Representation::Table),
            "PartialObjectMetadata" | "PartialObjectMetadataList" if known => Some(Representation::Metadata),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Offer = Offer { protobuf: true, tables: true, metadata: true };
    const CUSTOM: Offer = Offer { protobuf: false, ..ALL };

    fn accept(text: &str, offer: Offer) -> Option<(Encoding, Representation)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, text.parse().unwrap());
        accepted(&headers, offer, false, false).ok().map(|form| (form.encoding, form.view))
    }

    #[test]
    fn the_first_clause_that_can_be_met_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept("application/json", ALL), Some((Encoding::Json, Representation::Whole)));
        assert_eq!(accept("*/*", ALL), Some((Encoding::Json, Representation::Whole)));
        assert_eq!(accept(table, ALL), Some((Encoding::Json, Representation::Table)));
        assert_eq!(
            accept("application/json;as=Nope;v=v1;g=meta.k8s.io, application/yaml", ALL),
            Some((Encoding::Yaml, Representation::Whole))
        );
        assert_eq!(
            accept("application/vnd.kubernetes.protobuf,application/json", ALL),
            Some((Encoding::Protobuf, Representation::Whole))
        );
        assert_eq!(
            accept("application/vnd.kubernetes.protobuf,application/json", CUSTOM),
            Some((Encoding::Json, Representation::Whole))
        );
        assert_eq!(
            accept("application/json;q=0.5,application/yaml", ALL),
            Some((Encoding::Yaml, Representation::Whole))
        );
        assert_eq!(accept("application/json;q=0", ALL), Some((Encoding::Json, Representation::Whole)));
        assert_eq!(accept("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", ALL), None);
        assert_eq!(
            accept(&format!("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,{table}"), ALL),
            Some((Encoding::Json, Representation::Table))
        );
        assert_eq!(accept("application/json;v=v1", ALL), None);
        assert_eq!(accept("text/html", ALL), None);
        assert_eq!(accept("application/vnd.kubernetes.protobuf", CUSTOM), None);
    }
}
