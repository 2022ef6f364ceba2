//! Ranges of sizes and costs; arithmetic saturates.

/// The minimum and maximum size of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeEstimate {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

/// The minimum and maximum cost of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

/// The cost of a call, and the size of its result if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost without that of the arguments.
    pub cost: CostEstimate,
    /// The size of the result.
    pub result_size: Option<SizeEstimate>,
}

impl SizeEstimate {
    /// An unbounded size.
    pub const UNKNOWN: SizeEstimate = SizeEstimate { min: 0, max: u64::MAX };

    /// An exact size.
    pub fn fixed(size: u64) -> Self {
        SizeEstimate { min: size, max: size }
    }

    /// The sum of two sizes.
    pub fn plus(self, other: SizeEstimate) -> Self {
        SizeEstimate { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of two sizes.
    pub fn times(self, other: SizeEstimate) -> Self {
        SizeEstimate { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The cost of traversing it, rounded up.
    pub fn cost(self, per_unit: f64) -> CostEstimate {
        CostEstimate { min: scaled(self.min, per_unit), max: scaled(self.max, per_unit) }
    }

    /// The cost per unit times the size.
    pub fn each(self, cost: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_mul(cost.min), max: self.max.saturating_mul(cost.max) }
    }

    /// The union of two ranges.
    pub fn or(self, other: SizeEstimate) -> Self {
        SizeEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl CostEstimate {
    /// An exact cost.
    pub const fn fixed(cost: u64) -> Self {
        CostEstimate { min: cost, max: cost }
    }

    /// The sum of two costs.
    pub fn plus(self, other: CostEstimate) -> Self {
        CostEstimate { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of two costs.
    pub fn times(self, other: CostEstimate) -> Self {
        CostEstimate { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// A multiple, rounded up.
    pub fn scaled(self, factor: f64) -> Self {
        CostEstimate { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    /// The union of two ranges.
    pub fn or(self, other: CostEstimate) -> Self {
        CostEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl CallEstimate {
    /// An estimate without a result size.
    pub fn of(cost: CostEstimate) -> Self {
        CallEstimate { cost, result_size: None }
    }

    /// An estimate with a result size.
    pub fn sized(cost: CostEstimate, result_size: SizeEstimate) -> Self {
        CallEstimate { cost, result_size: Some(result_size) }
    }
}

/// A number times a factor, rounded up; the conversion saturates.
fn scaled(number: u64, factor: f64) -> u64 {
    (number as f64 * factor).ceil() as u64
}
