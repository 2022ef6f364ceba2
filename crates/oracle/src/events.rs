//! The audit log of the server, for scripts about it.
//!
//! `GET /audit/seen` returns the events of requests whose header `audit-id` the script chose, `DELETE
//! /audit/seen` clears them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::mask::is_uid;
use crate::run::{Request, Response};

const SEEN: &str = "/audit/seen";

/// An audit log file.
pub struct AuditEvents {
    path: PathBuf,
    /// The number of cleared events.
    forgotten: AtomicUsize,
}

impl AuditEvents {
    /// Reads events from this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path, forgotten: AtomicUsize::new(0) }
    }

    /// Whether a request is for the audit log and not for the API server.
    pub fn handles(request: &Request) -> bool {
        request.path == SEEN
    }

    /// Answers a request for the audit log; `None` for other requests.
    pub fn answer(&self, request: &Request) -> Option<Response> {
        if !Self::handles(request) {
            return None;
        }
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        // An id that the server generated is a UID; only ids from the script are returned.
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
