//! Medians and percentiles, and alternating measurement of limit and figure, because the machine's speed
//! varies.

use std::time::Duration;

use anyhow::{Context, Result};

/// Durations of single operations.
#[derive(Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Adds one.
    pub fn push(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    /// Adds those of another.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The percentile in seconds; 0 without values.
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(place).map_or(0.0, Duration::as_secs_f64)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Operations per second of one client.
    pub fn per_second(&self) -> f64 {
        self.len() as f64 / self.0.iter().sum::<Duration>().as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl FromIterator<Duration> for Latencies {
    fn from_iter<I: IntoIterator<Item = Duration>>(latencies: I) -> Self {
        Self(latencies.into_iter().collect())
    }
}

/// The median.
pub fn median(mut numbers: Vec<f64>) -> Result<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().context("nothing was measured")
}

/// Measures two rates alternately and returns the median of each.
pub async fn in_turns(
    rounds: usize,
    mut limit: impl AsyncFnMut() -> Result<f64>,
    mut figure: impl AsyncFnMut() -> Result<f64>,
) -> Result<(f64, f64)> {
    let (mut limits, mut figures) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        limits.push(limit().await?);
        figures.push(figure().await?);
    }
    Ok((median(limits)?, median(figures)?))
}

/// Measures two sets of latencies alternately and merges the rounds.
pub async fn latencies_in_turns(
    rounds: usize,
    mut limit: impl AsyncFnMut() -> Result<Latencies>,
    mut figure: impl AsyncFnMut() -> Result<Latencies>,
) -> Result<(Latencies, Latencies)> {
    let (mut limits, mut figures) = (Latencies::default(), Latencies::default());
    for _ in 0..rounds {
        limits.extend(limit().await?);
        figures.extend(figure().await?);
    }
    Ok((limits, figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let latencies: Latencies = (1..=100).rev().map(Duration::from_secs).collect();
        assert_eq!(latencies.median(), 51.0);
        assert_eq!(latencies.percentile(99), 100.0);
        assert_eq!(Latencies::default().percentile(99), 0.0);
    }
}
