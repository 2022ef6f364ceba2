//! Tests that see everything: the real binary, started as a person starts it.

mod access;
mod audit;
mod backups;
mod budgets;
mod clients;
mod daily;
mod drop_in;
mod endpoints;
mod errands;
mod failover;
mod failures;
mod file_modes;
mod housekeeping;
mod kube_rs;
mod kubectl;
mod languages;
mod launcher;
mod lifecycle;
mod many_servers;
mod observation;
mod operators;
mod oracle;
mod readme;
mod server;
mod upkeep;
