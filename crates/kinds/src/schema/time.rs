//! Kubernetes' times: RFC 3339 with Go's tolerance and Go's error messages.
//!
//! No calendar library: Go accepts years 0 to 9999 in any zone, and a zone offset can exceed that range in UTC.

use std::fmt;

/// The precision of a time in JSON, and of the stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `metav1.Time`.
    Seconds,
    /// `metav1.MicroTime`.
    Micros,
}

/// A point in time, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
}

/// Go's zero time, the first second of year one, which Kubernetes encodes as `null`.
const ZERO_SECONDS: i64 = -62_135_596_800;

const SECONDS_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICROS_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

impl Timestamp {
    /// Whether it is Go's zero time.
    pub fn is_zero(self) -> bool {
        self.seconds == ZERO_SECONDS && self.nanos == 0
    }

    /// Parses a time; errors are those of Go's `time.Parse`.
    pub fn parse(text: &str, precision: Precision) -> Result<Self, String> {
        let mut parser = Parser { text, rest: text, precision };
        parser.run()
    }

    /// Formats the time for JSON.
    pub fn format(self, precision: Precision) -> String {
        let clock = Clock(self);
        match precision {
            Precision::Seconds => format!("{clock}Z"),
            Precision::Micros => format!("{clock}.{:06}Z", self.nanos / 1000),
        }
    }
}

/// Date and time of day, without fraction and zone.
struct Clock(Timestamp);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.0.seconds.div_euclid(86_400));
        let second = self.0.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    precision: Precision,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<Timestamp, String> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.number("01", true)?;
        self.in_range("month", (1..=12).contains(&month))?;
        self.literal("-")?;
        let day = self.number("02", true)?;
        self.literal("T")?;
        let hour = self.number("15", false)?;
        self.in_range("hour", hour < 24)?;
        self.literal(":")?;
        let minute = self.number("04", true)?;
        self.in_range("minute", minute < 60)?;
        self.literal(":")?;
        let second = self.number("05", true)?;
        self.in_range("second", second < 60)?;
        let nanos = self.fraction()?;
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(format!("parsing time {}: extra text: {}", quote(self.text), quote(self.rest)));
        }
        self.in_range("day", day >= 1 && day <= days_in(year, month))?;
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok(Timestamp { seconds, nanos })
    }

    fn year(&mut self) -> Result<i64, String> {
        match self.rest.split_at_checked(4) {
            Some((digits, rest)) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                self.rest = rest;
                Ok(digits.bytes().fold(0, |sum, b| sum * 10 + i64::from(b - b'0')))
            }
            _ => Err(self.cannot_parse("2006")),
        }
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        let rest = self.rest.strip_prefix(literal);
        self.rest = rest.ok_or_else(|| self.cannot_parse(literal))?;
        Ok(())
    }

    /// Two digits, or one where Go's layout accepts one.
    fn number(&mut self, layout: &str, two_digits: bool) -> Result<i64, String> {
        let digit = |at: usize| self.rest.as_bytes().get(at).filter(|b| b.is_ascii_digit());
        let (value, length) = match (digit(0), digit(1)) {
            (Some(tens), Some(ones)) => (i64::from(tens - b'0') * 10 + i64::from(ones - b'0'), 2),
            (Some(ones), None) if !two_digits => (i64::from(ones - b'0'), 1),
            _ => return Err(self.cannot_parse(layout)),
        };
        self.rest = &self.rest[length..];
        Ok(value)
    }

    /// Go accepts a fraction of any length even if the layout has none.
    fn fraction(&mut self) -> Result<u32, String> {
        let bytes = self.rest.as_bytes();
        let starts = bytes.first().is_some_and(|b| *b == b'.' || *b == b',');
        let digits = bytes.iter().skip(1).take_while(|b| b.is_ascii_digit()).count();
        match self.precision {
            Precision::Seconds => {
                if starts && digits > 0 {
                    self.rest = &self.rest[1 + digits..];
                }
                Ok(0)
            }
            Precision::Micros => {
                if !starts || digits < 6 {
                    return Err(self.cannot_parse(".000000"));
                }
                let micros = bytes[1..7].iter().fold(0, |sum, b| sum * 10 + u32::from(b - b'0'));
                self.rest = &self.rest[7..];
                Ok(micros * 1000)
            }
        }
    }

    /// Seconds east of UTC.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.cannot_parse("Z07:00");
        let Some((zone, rest)) = self.rest.split_at_checked(6) else { return Err(bad) };
        let [sign, h1, h2, b':', m1, m2] = *zone.as_bytes() else { return Err(bad) };
        if !matches!(sign, b'+' | b'-') || ![h1, h2, m1, m2].iter().all(u8::is_ascii_digit) {
            return Err(bad);
        }
        let two = |tens: u8, ones: u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
        let (hours, minutes) = (two(h1, h2), two(m1, m2));
        // Go compares with 24 and 60 inclusively, so 60 minutes are accepted.
        self.in_range("time zone offset hour", hours <= 24)?;
        self.in_range("time zone offset minute", minutes <= 60)?;
        self.rest = rest;
        let seconds = hours * 3600 + minutes * 60;
        Ok(if sign == b'-' { -seconds } else { seconds })
    }

    fn cannot_parse(&self, layout: &str) -> String {
        let whole = match self.precision {
            Precision::Seconds => SECONDS_LAYOUT,
            Precision::Micros => MICROS_LAYOUT,
        };
        let (text, rest) = (quote(self.text), quote(self.rest));
        format!("parsing time {text} as \"{whole}\": cannot parse {rest} as \"{layout}\"")
    }

    fn in_range(&self, what: &str, is: bool) -> Result<(), String> {
        if is { Ok(()) } else { Err(format!("parsing time {}: {what} out of range", quote(self.text))) }
    }
}

/// Go's `time` package quotes bytes: all but printable ASCII becomes `\xNN`.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970. Years begin in March, so that the leap day is at their end.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, precision: Precision) -> Result<String, String> {
        Timestamp::parse(text, precision).map(|time| time.format(precision))
    }

    #[test]
    fn times_are_formatted_in_utc_as_by_kube_apiserver() {
        for (text, written) in [
            ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
            ("2020-01-02T03:04:05.999Z", "2020-01-02T03:04:05Z"),
            ("2020-01-02T03:04:05,5Z", "2020-01-02T03:04:05Z"),
            ("2020-01-02T3:04:05Z", "2020-01-02T03:04:05Z"),
            ("2020-01-02T03:04:05+02:00", "2020-01-02T01:04:05Z"),
            ("2020-01-02T03:04:05+02:60", "2020-01-02T00:04:05Z"),
            ("0000-01-02T03:04:05Z", "0000-01-02T03:04:05Z"),
            ("9999-12-31T23:59:59-02:00", "10000-01-01T01:59:59Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ] {
            assert_eq!(read(text, Precision::Seconds).as_deref(), Ok(written), "{text}");
        }
        let text = "2020-01-02T03:04:05.123456+01:00";
        assert_eq!(read(text, Precision::Micros).as_deref(), Ok("2020-01-02T02:04:05.123456Z"));
    }

    #[test]
    fn errors_are_those_of_kube_apiserver() {
        let whole = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        for (text, problem) in [
            ("x", format!("{whole} \"x\" as \"2006\"")),
            ("", format!("{whole} \"\" as \"2006\"")),
            ("2020-01-02 03:04:05", format!("{whole} \" 03:04:05\" as \"T\"")),
            ("2020-01-02T03:04:05", format!("{whole} \"\" as \"Z07:00\"")),
            ("2020-01-02T03:04:05z", format!("{whole} \"z\" as \"Z07:00\"")),
            ("2020-01-02T03:04:05+0200", format!("{whole} \"+0200\" as \"Z07:00\"")),
            ("10000-01-02T03:04:05Z", format!("{whole} \"0-01-02T03:04:05Z\" as \"-\"")),
        ] {
            assert_eq!(read(text, Precision::Seconds), Err(format!("parsing time \"{text}\" {problem}")));
        }
        for (text, problem) in [
            ("2020-13-02T03:04:05Z", "month out of range"),
            ("2020-02-30T03:04:05Z", "day out of range"),
            ("2020-01-02T25:04:05Z", "hour out of range"),
            ("2020-01-02T03:04:60Z", "second out of range"),
            ("2020-01-02T03:04:05+25:00", "time zone offset hour out of range"),
            ("2020-01-02T03:04:05Zfoo", "extra text: \"foo\""),
        ] {
            assert_eq!(read(text, Precision::Seconds), Err(format!("parsing time \"{text}\": {problem}")));
        }
    }

    #[test]
    fn a_microtime_needs_six_digits() {
        for (text, rest, layout) in [
            ("2020-01-02T03:04:05Z", "Z", ".000000"),
            ("2020-01-02T03:04:05.123Z", ".123Z", ".000000"),
            ("2020-01-02T03:04:05.123456789+02:00", "789+02:00", "Z07:00"),
            ("x", "x", "2006"),
        ] {
            let expected = format!(
                "parsing time \"{text}\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"{rest}\" as \"{layout}\""
            );
            assert_eq!(read(text, Precision::Micros), Err(expected));
        }
    }

    proptest! {
        #[test]
        fn every_time_survives_a_round_trip(seconds in -62_167_219_200i64..253_402_300_800, micros in 0u32..1_000_000) {
            let time = Timestamp { seconds, nanos: micros * 1000 };
            prop_assert_eq!(Timestamp::parse(&time.format(Precision::Micros), Precision::Micros), Ok(time));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:+.-]{0,30}") {
            let _ = Timestamp::parse(&text, Precision::Seconds);
            let _ = Timestamp::parse(&text, Precision::Micros);
        }
    }
}
