//! The rules of Kubernetes' kinds and of CRDs: schemas, patches, apply, defaults, validation, policies, RBAC.
//!
//! Everything here is a plain function or a plain value: no I/O, no async, no clock that was not passed in.

pub mod admission;
pub mod apply;
pub mod audit;
pub mod conversion;
pub mod patch;
pub mod pod_security;
pub mod policies;
pub mod protobuf;
pub mod rbac;
pub mod resources;
mod rules;
pub mod schema;
pub mod structural;
pub mod validation;

pub use rules::{
    Allocate, Claim, Column, Dependents, KindRules, Pool, Ranges, Refusal, SelectableField, Subresource,
    Writer, admin_access, approval_condition, bad_admin_access, bind, check_selectable, evict, flow_schemas,
    human_duration, keep_all_but_status, note_eviction, plain_rules, priority_levels, rules, scale_of,
    set_scale, validate_binding, validate_scale,
};
