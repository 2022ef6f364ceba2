//! Durations and timestamps, with the bounds and notations of the language.

mod parse;
mod print;

use jiff::civil;

pub(crate) use self::{parse::zone_offset, print::go_float};
use crate::{Error, Result};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// The first second of the year 1.
const MIN_SECONDS: i64 = -62_135_596_800;
/// The Unix epoch.
const EPOCH: civil::Date = civil::date(1970, 1, 1);
/// The last second of the year 9999.
const MAX_SECONDS: i64 = 253_402_300_799;

/// A duration in nanoseconds: at most 292 years, positive or negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration {
    /// The nanoseconds.
    pub nanos: i64,
}

/// A timestamp between the years 1 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

fn duration_overflow() -> Error {
    Error::new("duration overflow")
}

fn timestamp_overflow() -> Error {
    Error::new("timestamp overflow")
}

impl Duration {
    /// The sum of two durations.
    pub(crate) fn plus(self, other: Duration) -> Result<Duration> {
        let nanos = self.nanos.checked_add(other.nanos).ok_or_else(duration_overflow)?;
        Ok(Duration { nanos })
    }

    /// The difference of two durations.
    pub(crate) fn minus(self, other: Duration) -> Result<Duration> {
        let nanos = self.nanos.checked_sub(other.nanos).ok_or_else(duration_overflow)?;
        Ok(Duration { nanos })
    }

    /// The negated duration.
    pub(crate) fn negated(self) -> Result<Duration> {
        Ok(Duration { nanos: self.nanos.checked_neg().ok_or_else(duration_overflow)? })
    }
}

impl Timestamp {
    /// The timestamp with these seconds and nanoseconds since the Unix epoch.
    pub fn new(seconds: i64, nanos: u32) -> Result<Timestamp> {
        let is_in_bounds =
            (MIN_SECONDS..=MAX_SECONDS).contains(&seconds) && i64::from(nanos) < NANOS_PER_SECOND;
        if is_in_bounds { Ok(Timestamp { seconds, nanos }) } else { Err(timestamp_overflow()) }
    }

    /// Seconds since the Unix epoch.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds of the second.
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// The timestamp plus a duration.
    pub(crate) fn plus(self, span: Duration) -> Result<Timestamp> {
        self.moved(span.nanos.into())
    }

    /// The timestamp minus a duration.
    pub(crate) fn minus(self, span: Duration) -> Result<Timestamp> {
        self.moved(-i128::from(span.nanos))
    }

    fn moved(self, nanos: i128) -> Result<Timestamp> {
        let per_second = i128::from(NANOS_PER_SECOND);
        let total = self.total_nanos() + nanos;
        let seconds = i64::try_from(total.div_euclid(per_second)).map_err(|_| timestamp_overflow())?;
        let nanos = u32::try_from(total.rem_euclid(per_second)).map_err(|_| timestamp_overflow())?;
        Timestamp::new(seconds, nanos)
    }

    /// The duration from another timestamp to this one.
    pub(crate) fn since(self, earlier: Timestamp) -> Result<Duration> {
        let nanos = self.total_nanos() - earlier.total_nanos();
        Ok(Duration { nanos: i64::try_from(nanos).map_err(|_| duration_overflow())? })
    }

    fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos)
    }

    /// The civil date and time at an offset from UTC.
    pub(crate) fn civil(self, offset_seconds: i64) -> Result<civil::DateTime> {
        let local = self.seconds + offset_seconds;
        let day = i32::try_from(local.div_euclid(86_400)).map_err(|_| timestamp_overflow())?;
        let second = local.rem_euclid(86_400);
        let date = EPOCH.checked_add(jiff::Span::new().days(day)).map_err(|_| timestamp_overflow())?;
        let part = |value: i64| i8::try_from(value).expect("hours, minutes and seconds are small");
        let nanos = i32::try_from(self.nanos).expect("it is under a second");
        Ok(date.at(part(second / 3600), part(second / 60 % 60), part(second % 60), nanos))
    }
}
