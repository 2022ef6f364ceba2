//! Ranges of sizes and costs; nothing overflows, it only becomes the greatest number.

/// The least and the greatest size that a value can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeEstimate {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

/// The least and the greatest cost of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

/// What a call may cost, and how large its result may be, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost, without that of the arguments.
    pub cost: CostEstimate,
    /// The size of the result.
    pub result_size: Option<SizeEstimate>,
}

impl SizeEstimate {
    /// Nothing is known.
    pub const UNKNOWN: SizeEstimate = SizeEstimate { min: 0, max: u64::MAX };

    /// A known size.
    pub fn fixed(size: u64) -> Self {
        SizeEstimate { min: size, max: size }
    }

    /// One size after the other.
    pub fn plus(self, other: SizeEstimate) -> Self {
        SizeEstimate { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// One size as often as the other says.
    pub fn times(self, other: SizeEstimate) -> Self {
        SizeEstimate { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// What going through it costs, rounded up.
    pub fn cost(self, per_unit: f64) -> CostEstimate {
        CostEstimate { min: scaled(self.min, per_unit), max: scaled(self.max, per_unit) }
    }

    /// A cost for every unit.
    pub fn each(self, cost: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_mul(cost.min), max: self.max.saturating_mul(cost.max) }
    }

    /// Either of two.
    pub fn or(self, other: SizeEstimate) -> Self {
        SizeEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl CostEstimate {
    /// A known cost.
    pub const fn fixed(cost: u64) -> Self {
        CostEstimate { min: cost, max: cost }
    }

    /// Both.
    pub fn plus(self, other: CostEstimate) -> Self {
        CostEstimate { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// One as often as the other says.
    pub fn times(self, other: CostEstimate) -> Self {
        CostEstimate { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// A part or a multiple, rounded up.
    pub fn scaled(self, factor: f64) -> Self {
        CostEstimate { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    /// Either of two.
    pub fn or(self, other: CostEstimate) -> Self {
        CostEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl CallEstimate {
    /// A call whose result has no size that is known.
    pub fn of(cost: CostEstimate) -> Self {
        CallEstimate { cost, result_size: None }
    }

    /// A call whose result has a size.
    pub fn sized(cost: CostEstimate, result_size: SizeEstimate) -> Self {
        CallEstimate { cost, result_size: Some(result_size) }
    }
}

/// A number times a factor, rounded up; the conversion saturates.
fn scaled(number: u64, factor: f64) -> u64 {
    (number as f64 * factor).ceil() as u64
}
