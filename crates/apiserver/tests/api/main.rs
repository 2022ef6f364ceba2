//! API tests without a socket: every test has its own server in memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod admission;
mod admission_policies;
mod admission_webhooks;
mod audit;
mod authorization;
mod authorization_walk;
mod bodies;
mod bootstrap;
mod certificates;
mod client;
mod conversion_webhooks;
mod custom_resources;
mod delete_collection;
mod discovery;
mod faulty_engine;
mod flow_schemas;
mod health;
mod lists;
mod lost_history;
mod mounts;
mod namespaces;
mod objects;
mod openapi;
mod overload;
mod rbac;
mod representations;
mod secret_disclosure;
mod selectable_fields;
mod service_account_tokens;
mod services;
mod single_verb_callers;
mod storage_failures;
mod supervision;
mod unparsed_reads;
mod watches;
mod webhook_client;
mod webhook_server;
