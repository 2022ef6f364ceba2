//! Parsing of timestamps and durations.

use jiff::{civil, tz::TimeZoneDatabase};
use lexical::quote;

use super::{Duration, EPOCH, Timestamp};
use crate::{Error, Result};

impl Duration {
    /// Parses a duration in Go's notation, such as `1h30m` or `-1.5s`.
    pub fn parse(text: &str) -> Option<Duration> {
        let (is_negative, mut rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Some(Duration { nanos: 0 });
        }
        if rest.is_empty() {
            return None;
        }
        let mut nanos: i128 = 0;
        while !rest.is_empty() {
            let (part, after) = one_part(rest)?;
            nanos = nanos.checked_add(part).filter(|nanos| *nanos <= 1 << 63)?;
            rest = after;
        }
        let nanos = i64::try_from(if is_negative { -nanos } else { nanos }).ok()?;
        Some(Duration { nanos })
    }
}

/// Parses a number with its unit, in nanoseconds; returns the rest.
fn one_part(text: &str) -> Option<(i128, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(digits(after)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (unit_name, rest) =
        rest.split_at(rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len()));
    let unit: i128 = match unit_name {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
    // Further digits are below a nanosecond in every unit.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse::<i64>().ok()?.into() };
    Some((whole * unit + fraction * unit / scale, rest))
}

impl Timestamp {
    /// Parses a timestamp in the notation of RFC 3339.
    pub fn parse(text: &str) -> Option<Result<Timestamp>> {
        let bytes = text.as_bytes();
        if bytes.len() < 20 || bytes[10] != b'T' || bytes[13] != b':' || bytes[16] != b':' {
            return None;
        }
        let day_seconds = seconds_of_date(text.get(..10)?)?;
        let (hour, minute, second) =
            (number(text.get(11..13)?, 23)?, number(text.get(14..16)?, 59)?, number(text.get(17..19)?, 59)?);
        let (nanos, zone) = fraction(text.get(19..)?)?;
        let seconds = day_seconds + hour * 3600 + minute * 60 + second - zone_seconds(zone)?;
        Some(Timestamp::new(seconds, nanos))
    }

    /// Parses a timestamp, or a date, which is the start of its day.
    pub(crate) fn parse_date_or_time(text: &str) -> Option<Timestamp> {
        if text.len() == 10 {
            return Timestamp::new(seconds_of_date(text)?, 0).ok();
        }
        Timestamp::parse(text)?.ok()
    }
}

fn number(text: &str, max: i64) -> Option<i64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number <= max)
}

fn seconds_of_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = i16::try_from(number(text.get(..4)?, 9999)?).ok()?;
    let month = i8::try_from(number(text.get(5..7)?, 12)?).ok()?;
    let day = i8::try_from(number(text.get(8..)?, 31)?).ok()?;
    let date = civil::Date::new(year, month, day).ok()?;
    Some(EPOCH.until(date).ok()?.get_days() as i64 * 86_400)
}

/// Parses a fraction of a second, in nanoseconds; returns the rest.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let Some(after) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let count = after.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = after.split_at(count);
    let kept: String = digits.chars().chain("000000000".chars()).take(9).collect();
    if count == 0 { None } else { Some((kept.parse().ok()?, rest)) }
}

/// Parses a UTC offset in seconds: `Z` or `+01:00`.
fn zone_seconds(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let bytes = text.as_bytes();
    if bytes.len() != 6 || bytes[3] != b':' {
        return None;
    }
    let sign = match bytes[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    Some(sign * (number(text.get(1..3)?, 24)? * 3600 + number(text.get(4..)?, 59)? * 60))
}

/// The UTC offset of a time zone at a time, in seconds. A zone is a name such as `Europe/Berlin`, or hours
/// and minutes such as `+02:00`.
pub(crate) fn zone_offset(zone: &str, time: Timestamp) -> Result<i64> {
    let Some((hours, minutes)) = zone.split_once(':') else { return named_offset(zone, time) };
    let parse = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let parsed = number(digits, 99_999).filter(|_| !digits.is_empty());
        let invalid = || Error::new(format!("strconv.Atoi: parsing {}: invalid syntax", quote(text)));
        parsed.map(|number| if text.starts_with('-') { -number } else { number }).ok_or_else(invalid)
    };
    let (hours, minutes) = (parse(hours)?, parse(minutes)?);
    let minutes = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    Ok(minutes * 60)
}

fn named_offset(zone: &str, time: Timestamp) -> Result<i64> {
    if matches!(zone, "" | "UTC") {
        return Ok(0);
    }
    // The bundled time zone database makes results independent of the machine.
    let known = TimeZoneDatabase::bundled().get(zone);
    let known = known.map_err(|_| Error::new(format!("unknown time zone {zone}")))?;
    // The last day of the year 9999 is outside of jiff's range; by then every zone has its last rule.
    let nearest = if time.seconds() < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    let time = jiff::Timestamp::from_second(time.seconds()).unwrap_or(nearest);
    Ok(known.to_offset(time).seconds().into())
}
