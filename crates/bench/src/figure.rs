//! A figure of the table: a number with its unit, the machine's limit, and the goal.

use std::fmt;

/// The unit of a number. For rates higher is better, for the rest lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Per second.
    Rate,
    /// Seconds.
    Time,
    /// Bytes.
    Bytes,
    /// Per cent.
    Percent,
}

/// A number with its unit.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The number, in seconds, bytes, per second or per cent.
    pub value: f64,
    /// The unit.
    pub unit: Unit,
    /// A further result, such as the tail of a distribution.
    pub detail: Option<String>,
}

impl Figure {
    /// A rate per second.
    pub fn rate(value: f64) -> Self {
        Self { value, unit: Unit::Rate, detail: None }
    }

    /// A time in seconds.
    pub fn time(value: f64) -> Self {
        Self { value, unit: Unit::Time, detail: None }
    }

    /// A memory size.
    pub fn bytes(value: f64) -> Self {
        Self { value, unit: Unit::Bytes, detail: None }
    }

    /// A loss in per cent.
    pub fn percent(value: f64) -> Self {
        Self { value, unit: Unit::Percent, detail: None }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The ratio to another figure of the same unit: a percentage for rates, a multiple for the rest.
    pub fn compared(&self, other: &Self) -> String {
        if other.value <= 0.0 {
            return "–".to_owned();
        }
        let ratio = self.value / other.value;
        match self.unit {
            Unit::Rate if ratio < 2.0 => format!("{:.0} %", ratio * 100.0),
            _ => format!("{ratio:.1} ×"),
        }
    }

    /// The factor by which this figure is better than another.
    pub fn times_better(&self, other: &Self) -> f64 {
        match self.unit {
            Unit::Rate => self.value / other.value,
            _ => other.value / self.value,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.value, self.unit))?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

/// A number with its unit, in short form.
pub fn show(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Rate => format!("{}/s", grouped(value)),
        Unit::Percent => format!("{value:.1} %"),
        Unit::Time if value >= 1.0 => format!("{value:.2} s"),
        Unit::Time if value >= 0.01 => format!("{:.0} ms", value * 1e3),
        Unit::Time if value >= 0.001 => format!("{:.1} ms", value * 1e3),
        Unit::Time => format!("{:.0} µs", value * 1e6),
        Unit::Bytes if value >= 1e5 => format!("{:.1} MB", value / 1e6),
        Unit::Bytes => format!("{:.1} KB", value / 1e3),
    }
}

/// An integer with thousands separators.
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The name of a measure with its number of objects.
pub fn sized(name: &str, count: usize) -> String {
    name.replace("{n}", &grouped(count as f64))
}

/// The goal of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// No goal.
    None,
    /// At least this value.
    AtLeast(f64),
    /// Less than this value.
    Below(f64),
    /// Less than the machine's limit plus this value.
    LimitPlus(f64),
    /// This many times better than Kubernetes in the same run.
    TimesKubernetes(f64),
}

impl Goal {
    /// The goal as text.
    pub fn text(self, unit: Unit) -> String {
        match self {
            Self::None => "–".to_owned(),
            Self::AtLeast(goal) => format!("≥ {}", show(goal, unit)),
            Self::Below(goal) => format!("< {}", show(goal, unit)),
            Self::LimitPlus(goal) => format!("< limit + {}", show(goal, unit)),
            Self::TimesKubernetes(goal) => format!("≥ {goal} × Kubernetes"),
        }
    }

    /// Whether the goal is met; `None` if unknown.
    pub fn is_met(
        self,
        figure: &Figure,
        limit: Option<&Figure>,
        kubernetes: Option<&Figure>,
    ) -> Option<bool> {
        match self {
            Self::None => None,
            Self::AtLeast(goal) => Some(figure.value >= goal),
            Self::Below(goal) => Some(figure.value < goal),
            Self::LimitPlus(goal) => limit.map(|limit| figure.value < limit.value + goal),
            Self::TimesKubernetes(goal) => kubernetes.map(|peer| figure.times_better(peer) >= goal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_carry_their_unit() {
        assert_eq!(show(1_234_567.0, Unit::Rate), "1,234,567/s");
        assert_eq!(show(0.000_25, Unit::Time), "250 µs");
        assert_eq!(show(0.0042, Unit::Time), "4.2 ms");
        assert_eq!(show(0.5, Unit::Time), "500 ms");
        assert_eq!(show(2_048.0, Unit::Bytes), "2.0 KB");
        assert_eq!(show(20e6, Unit::Bytes), "20.0 MB");
    }

    #[test]
    fn goals_compare_with_their_reference() {
        let limit = Figure::time(0.001);
        assert_eq!(Goal::LimitPlus(0.0005).is_met(&Figure::time(0.0014), Some(&limit), None), Some(true));
        assert_eq!(Goal::LimitPlus(0.0005).is_met(&Figure::time(0.0016), Some(&limit), None), Some(false));
        let peer = Figure::rate(1_000.0);
        assert_eq!(Goal::TimesKubernetes(5.0).is_met(&Figure::rate(4_999.0), None, Some(&peer)), Some(false));
        assert_eq!(Goal::TimesKubernetes(5.0).is_met(&Figure::rate(5_000.0), None, None), None);
    }
}
