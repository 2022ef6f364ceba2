//! The parameters of lists and watches, parsed and checked as in Kubernetes.

use model::Revision;
use model::error::{Error, FieldError, quote};
use serde_json::json;

use super::query::Query;

/// The meaning of `resourceVersion` in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The state as of exactly this revision.
    Exact(Revision),
    /// Any state that is not older. Zero: any state at all.
    NotOlderThan(Revision),
    /// The newest state.
    MostRecent,
}

/// Parameters of a list.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// The requested revision.
    pub version: VersionMatch,
    /// The page size; `None` for all objects.
    pub limit: Option<usize>,
    /// The continue token.
    pub continue_token: Option<String>,
}

/// The start of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// The present objects as ADDED events, at least as fresh as this revision.
    State(Revision),
    /// The changes after this revision.
    After(Revision),
    /// With the changes from now on.
    Now,
}

/// Parameters of a watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The start of the watch.
    pub start: WatchStart,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
}

impl ListOptions {
    /// Parses and checks the parameters of a list.
    pub fn from_query(query: &Query) -> Result<Self, Error> {
        check_combination(query, false)?;
        query.number("timeoutSeconds")?;
        let limit = query.number("limit")?.filter(|limit| *limit > 0);
        let continue_token = Some(query.text("continue")).filter(|token| !token.is_empty());
        let given = query.text("resourceVersion");
        let version = if given.is_empty() || continue_token.is_some() {
            VersionMatch::MostRecent
        } else {
            let revision = parse_revision(given).map_err(|message| Error::BadRequest {
                message: format!("invalid resource version: {message}"),
            })?;
            // Without a match, a limited list at a revision is exact; zero always means "any".
            let exact = match query.text("resourceVersionMatch") {
                "Exact" => true,
                "NotOlderThan" => false,
                _ => limit.is_some() && revision != Revision::ZERO,
            };
            if exact { VersionMatch::Exact(revision) } else { VersionMatch::NotOlderThan(revision) }
        };
        Ok(Self {
            version,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            continue_token: continue_token.map(str::to_owned),
        })
    }
}

impl WatchOptions {
    /// Parses and checks the parameters of a watch.
    pub fn from_query(query: &Query) -> Result<Self, Error> {
        check_combination(query, true)?;
        let given = query.text("resourceVersion");
        let revision = if given.is_empty() {
            None
        } else {
            Some(parse_revision(given).map_err(|message| Error::BadRequest { message })?)
        };
        let fresh = revision.unwrap_or(Revision::ZERO);
        let start = match (query.optional_flag("sendInitialEvents"), revision) {
            (Some(true), _) | (None, None | Some(Revision::ZERO)) => WatchStart::State(fresh),
            (Some(false), None | Some(Revision::ZERO)) => WatchStart::Now,
            (_, Some(revision)) => WatchStart::After(revision),
        };
        let timeout = query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        Ok(Self {
            start,
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout_seconds: timeout.map(i64::unsigned_abs),
        })
    }
}

/// Parses a `resourceVersion`; the error is Kubernetes' message.
pub fn parse_revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {text}: strconv.ParseUint: parsing {text}: invalid syntax",
            text = quote(text)
        )
    })
}

/// Checks the combination of `resourceVersion`, `resourceVersionMatch`, `continue` and `sendInitialEvents`.
fn check_combination(query: &Query, watch: bool) -> Result<(), Error> {
    let version = query.text("resourceVersion");
    let matching = query.text("resourceVersionMatch");
    let initial = query.has("sendInitialEvents");
    let forbidden = |field: &str, detail: &str| FieldError::forbidden(field, detail);
    let mut errors = Vec::new();
    if watch {
        if initial && matching != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(forbidden("resourceVersionMatch", detail));
        }
        if !initial && !matching.is_empty() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(forbidden("resourceVersionMatch", detail));
        }
        if initial && !matching.is_empty() && matching != "NotOlderThan" {
            let value = json!(matching);
            errors.push(FieldError::not_supported("resourceVersionMatch", value, &["NotOlderThan"]));
        }
        if initial && !matching.is_empty() && !query.text("continue").is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(forbidden("resourceVersionMatch", detail));
        }
    } else {
        if !matching.is_empty() {
            check_match(version, matching, query, &mut errors);
        }
        if initial {
            errors.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid {
        group: "meta.k8s.io".to_owned(),
        kind: "ListOptions".to_owned(),
        name: String::new(),
        errors,
    })
}

fn check_match(version: &str, matching: &str, query: &Query, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "resourceVersionMatch";
    if version.is_empty() {
        let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        errors.push(FieldError::forbidden(FIELD, detail));
    }
    if !query.text("continue").is_empty() {
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(FIELD, detail));
    }
    if matching != "Exact" && matching != "NotOlderThan" {
        let supported = ["Exact", "NotOlderThan", ""];
        errors.push(FieldError::not_supported(FIELD, json!(matching), &supported));
    }
    if matching == "Exact" && version == "0" {
        let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        errors.push(FieldError::forbidden(FIELD, detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> VersionMatch {
        ListOptions::from_query(&Query::parse(query)).unwrap().version
    }

    fn watch(query: &str) -> WatchStart {
        WatchOptions::from_query(&Query::parse(query)).unwrap().start
    }

    #[test]
    fn a_list_reads_the_version_as_kubernetes_documents_it() {
        assert_eq!(list(""), VersionMatch::MostRecent);
        assert_eq!(list("resourceVersion=0"), VersionMatch::NotOlderThan(Revision(0)));
        assert_eq!(list("resourceVersion=0&limit=5"), VersionMatch::NotOlderThan(Revision(0)));
        assert_eq!(list("resourceVersion=7"), VersionMatch::NotOlderThan(Revision(7)));
        assert_eq!(list("resourceVersion=7&limit=5"), VersionMatch::Exact(Revision(7)));
        assert_eq!(
            list("resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan"),
            VersionMatch::NotOlderThan(Revision(7))
        );
        assert_eq!(list("resourceVersion=7&resourceVersionMatch=Exact"), VersionMatch::Exact(Revision(7)));
    }

    #[test]
    fn a_watch_begins_where_its_parameters_say() {
        const LIST: &str = "resourceVersionMatch=NotOlderThan";
        assert_eq!(watch(""), WatchStart::State(Revision(0)));
        assert_eq!(watch("resourceVersion=0"), WatchStart::State(Revision(0)));
        assert_eq!(watch("resourceVersion=9"), WatchStart::After(Revision(9)));
        assert_eq!(watch(&format!("sendInitialEvents=true&{LIST}")), WatchStart::State(Revision(0)));
        assert_eq!(
            watch(&format!("sendInitialEvents=true&{LIST}&resourceVersion=9")),
            WatchStart::State(Revision(9))
        );
        assert_eq!(watch(&format!("sendInitialEvents=false&{LIST}")), WatchStart::Now);
    }

    #[test]
    fn combinations_without_a_meaning_are_refused() {
        for query in [
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch=Foo&resourceVersion=5",
            "sendInitialEvents=true",
        ] {
            let error = ListOptions::from_query(&Query::parse(query)).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{query}: {error}");
        }
        for query in ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"] {
            let error = WatchOptions::from_query(&Query::parse(query)).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{query}: {error}");
        }
        assert!(ListOptions::from_query(&Query::parse("resourceVersion=abc")).is_err());
        assert!(ListOptions::from_query(&Query::parse("limit=abc")).is_err());
    }
}
