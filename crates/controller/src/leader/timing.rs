//! The times of a leader election.

use std::time::Duration;

use thiserror::Error;

/// The times of a leader election, with the meanings of client-go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Times with which two leaders could work at once, or none for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidTiming {
    /// The Lease has whole seconds.
    #[error("the lease duration must be at least one second, and whole seconds")]
    LeaseDuration,
    /// The leader stops its work between the deadline and the end of the lease.
    #[error("the renew deadline must be less than nine tenths of the lease duration")]
    RenewDeadline,
    /// A renewal has to fit in.
    #[error("the retry period must be positive, and less than five sixths of the renew deadline")]
    RetryPeriod,
}

impl Default for Timing {
    /// A lease of 5 s that is renewed every 1.5 s: other processes take over 5 s after a leader died.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(5),
            renew_deadline: Duration::from_millis(3500),
            retry_period: Duration::from_millis(1500),
        }
    }
}

impl Timing {
    /// `lease_duration`: the time without a renewal after which others take over. `renew_deadline`: the time without a renewal after which the
    /// leader stops. `retry_period`: the time between renewals.
    ///
    /// # Errors
    /// When the times do not leave room for each other.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, InvalidTiming> {
        let timing = Self { lease_duration, renew_deadline, retry_period };
        if lease_duration.as_secs() == 0 || lease_duration.subsec_nanos() != 0 {
            return Err(InvalidTiming::LeaseDuration);
        }
        if renew_deadline >= timing.cut_off() {
            return Err(InvalidTiming::RenewDeadline);
        }
        if retry_period.is_zero() || retry_period.mul_f64(1.2) >= renew_deadline {
            return Err(InvalidTiming::RetryPeriod);
        }
        Ok(timing)
    }

    /// The time without a renewal after which others take over.
    pub(super) fn lease_duration(self) -> Duration {
        self.lease_duration
    }

    /// The time without a renewal after which the work is asked to stop.
    pub(super) fn renew_deadline(self) -> Duration {
        self.renew_deadline
    }

    /// The time between renewals.
    pub(super) fn retry_period(self) -> Duration {
        self.retry_period
    }

    /// The time without a renewal after which work that did not stop is dropped: with a margin before others may begin.
    pub(super) fn cut_off(self) -> Duration {
        self.lease_duration - self.lease_duration / 10
    }

    /// The wait after a request that failed.
    pub(super) fn failure_delay(self) -> Duration {
        self.retry_period / 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_leave_room_for_each_other() {
        let new = |lease: u64, deadline: u64, retry: u64| {
            Timing::new(
                Duration::from_millis(lease),
                Duration::from_millis(deadline),
                Duration::from_millis(retry),
            )
        };
        assert_eq!(new(5000, 3500, 1500), Ok(Timing::default()));
        for (timing, expected) in [
            (new(15_000, 10_000, 2000), None),
            (new(0, 0, 0), Some(InvalidTiming::LeaseDuration)),
            (new(1500, 1000, 100), Some(InvalidTiming::LeaseDuration)),
            (new(10_000, 9000, 2000), Some(InvalidTiming::RenewDeadline)),
            (new(10_000, 6000, 5000), Some(InvalidTiming::RetryPeriod)),
            (new(10_000, 6000, 0), Some(InvalidTiming::RetryPeriod)),
        ] {
            assert_eq!(timing.err(), expected, "{timing:?}");
        }
    }
}
