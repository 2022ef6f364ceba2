//! The group `storage.k8s.io`.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use super::KindRules;

pub(super) use csi_node::bad_driver_name;
pub(super) use storage_class::old_label;

pub(super) const RULES: &[KindRules] = &[
    csi_driver::RULES,
    csi_node::RULES,
    csi_storage_capacity::RULES,
    storage_class::RULES,
    volume_attachment::RULES,
    volume_attributes_class::RULES,
];

const GROUP: &str = "storage.k8s.io";
