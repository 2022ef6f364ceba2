//! The API as its clients see it, without a socket: every test has a server of its own in memory.

mod access;
mod bodies;
mod client;
mod collections;
mod discovery;
mod lists;
mod objects;
mod views;
mod watches;
