//! The controllers that keep a cluster in order, one module for each.
