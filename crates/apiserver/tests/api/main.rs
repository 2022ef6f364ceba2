//! The API as its clients see it, without a socket: every test has a server of its own in memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod access;
mod admission;
mod audit;
mod bodies;
mod bootstrap;
mod certificates;
mod client;
mod collections;
mod conversion;
mod custom;
mod discovery;
mod discretion;
mod faulty;
mod flows;
mod health;
mod indexing;
mod lists;
mod lost_history;
mod mounts;
mod namespaces;
mod objects;
mod one_verb;
mod openapi;
mod overload;
mod policies;
mod rbac;
mod services;
mod storage;
mod supervision;
mod tokens;
mod unparsed;
mod views;
mod walk;
mod watches;
mod webhook;
mod webhook_client;
mod webhooks;
