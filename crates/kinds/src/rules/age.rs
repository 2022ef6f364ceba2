//! Ages as kubectl shows them.

use jiff::Timestamp as Now;

use crate::schema::{Precision, Timestamp};

/// A duration in two or three digits: `64s`, `5m21s`, `29m`, `3h10m`, `6y319d`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    // Tolerates a clock skew of a second.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let two = |unit: i64, name: char, part: i64, part_name: char| match seconds % unit / part {
        0 => format!("{}{name}", seconds / unit),
        rest => format!("{}{name}{rest}{part_name}", seconds / unit),
    };
    match seconds {
        ..0 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(MINUTE, 'm', 1, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(HOUR, 'h', MINUTE, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(DAY, 'd', HOUR, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(YEAR, 'y', DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The time since a timestamp; `None` for an invalid one.
pub fn since(time: &str, now: Now) -> Option<String> {
    // Up to six fractional digits are used; Go ignores a longer fraction.
    let time = Timestamp::parse(time, Precision::Micros)
        .or_else(|_| Timestamp::parse(time, Precision::Seconds))
        .ok()?;
    let then = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    let seconds = (now.as_nanosecond() - then) / 1_000_000_000;
    Some(human_duration(i64::try_from(seconds).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_durations_have_a_coarse_unit() {
        let (minute, hour, day) = (60, 3600, 86_400);
        for (seconds, shown) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (5 * minute + 21, "5m21s"),
            (10 * minute + 21, "10m"),
            (3 * hour - 1, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 59 * minute, "7h59m"),
            (8 * hour + 59 * minute, "8h"),
            (2 * day - 1, "47h"),
            (2 * day, "2d"),
            (7 * day + 23 * hour, "7d23h"),
            (8 * day + 23 * hour, "8d"),
            (730 * day - 1, "729d"),
            (730 * day, "2y"),
            (6 * 365 * day + 319 * day, "6y319d"),
            (8 * 365 * day + 319 * day, "8y"),
        ] {
            assert_eq!(human_duration(seconds), shown, "{seconds}");
        }
    }

    #[test]
    fn an_age_counts_whole_seconds() {
        let now: Now = "2026-11-16T00:20:00.9Z".parse().unwrap();
        for (time, shown) in [
            ("2026-11-16T00:19:30Z", Some("30s")),
            ("2026-11-16T00:20:01Z", Some("0s")),
            ("2026-11-16T00:19:59.950000Z", Some("0s")),
            ("2026-11-16T00:20:03Z", Some("<invalid>")),
            ("2020-01-02T03:04:05Z", Some("6y319d")),
            ("", None),
        ] {
            assert_eq!(since(time, now).as_deref(), shown, "{time}");
        }
    }
}
