//! The audit log of the server, for scripts that are about it.
//!
//! `GET /audit/seen` gives the events of requests that have a name of their own in the header `audit-id`, `DELETE /audit/seen`
//! forgets them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::mask::is_uid;
use crate::run::{Request, Response};

const SEEN: &str = "/audit/seen";

/// A log in a file.
pub struct Events {
    path: PathBuf,
    /// How many of its events are forgotten.
    forgotten: AtomicUsize,
}

impl Events {
    /// The events in this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path, forgotten: AtomicUsize::new(0) }
    }

    /// Whether a request is about the log.
    pub fn are_meant(request: &Request) -> bool {
        request.path == SEEN
    }

    /// The answer to a request that is not meant for the API server.
    pub fn own(&self, request: &Request) -> Option<Response> {
        if !Self::are_meant(request) {
            return None;
        }
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        // Who gave a request no name cannot know the one that it got.
        let named: Vec<Value> =
            events.filter(|event| event["auditID"].as_str().is_some_and(|id| !is_uid(id))).collect();
        let from = self.forgotten.load(Ordering::Relaxed);
        if request.method == "DELETE" {
            self.forgotten.store(named.len(), Ordering::Relaxed);
        }
        let seen = named.get(from..).unwrap_or_default();
        let body = if request.method == "GET" { json!({"seen": seen}) } else { json!({}) };
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Some(Response { code: 200, headers, body: body.to_string().into_bytes() })
    }
}
