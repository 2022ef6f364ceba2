//! Accessors of timestamps and durations.

use jiff::civil::DateTime;

use crate::{Call, Error, Implementation, Library, Overload, Result, Type, Value, time::zone_offset};

pub(super) fn library() -> Library {
    Library::new()
        .function("getFullYear", parts("timestamp_to_year", "timestamp_to_year_with_tz", year))
        .function("getMonth", parts("timestamp_to_month", "timestamp_to_month_with_tz", month))
        .function(
            "getDayOfYear",
            parts("timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", day_of_year),
        )
        .function(
            "getDayOfMonth",
            parts("timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", day_of_month),
        )
        .function(
            "getDate",
            parts("timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz", date),
        )
        .function(
            "getDayOfWeek",
            parts("timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", day_of_week),
        )
        .function("getHours", parts("timestamp_to_hours", "timestamp_to_hours_with_tz", hours))
        .function("getHours", [of_span("duration_to_hours", hours)])
        .function("getMinutes", parts("timestamp_to_minutes", "timestamp_to_minutes_with_tz", minutes))
        .function("getMinutes", [of_span("duration_to_minutes", minutes)])
        .function("getSeconds", parts("timestamp_to_seconds", "timestamp_to_seconds_tz", seconds))
        .function("getSeconds", [of_span("duration_to_seconds", seconds)])
        .function(
            "getMilliseconds",
            parts("timestamp_to_milliseconds", "timestamp_to_milliseconds_with_tz", milliseconds),
        )
        .function("getMilliseconds", [of_span("duration_to_milliseconds", milliseconds)])
}

fn parts(id: &'static str, id_with_zone: &'static str, call: Implementation) -> [Overload; 2] {
    [
        Overload::member(id, [Type::Timestamp], Type::Int, call),
        Overload::member(id_with_zone, [Type::Timestamp, Type::String], Type::Int, call),
    ]
}

fn of_span(id: &'static str, call: Implementation) -> Overload {
    Overload::member(id, [Type::Duration], Type::Int, call)
}

/// A component of a timestamp, in the time zone of the second argument.
fn part<'a>(args: &[Value<'a>], part: impl Fn(DateTime) -> i64) -> Result<Value<'a>> {
    let Value::Timestamp(time) = &args[0] else { return Err(Error::no_such_overload()) };
    let offset = match args.get(1) {
        Some(zone) => zone_offset(zone.as_str()?, *time)?,
        None => 0,
    };
    Ok(Value::Int(part(time.civil(offset)?)))
}

/// A component of a timestamp, or a duration in a unit.
fn part_or_whole<'a>(args: &[Value<'a>], of: impl Fn(DateTime) -> i64, unit_nanos: i64) -> Result<Value<'a>> {
    match &args[0] {
        Value::Duration(span) => Ok(Value::Int(span.nanos / unit_nanos)),
        _ => part(args, of),
    }
}

fn year<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part(args, |time| time.year().into())
}

fn month<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part(args, |time| i64::from(time.month()) - 1)
}

fn day_of_year<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part(args, |time| i64::from(time.day_of_year()) - 1)
}

fn day_of_month<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part(args, |time| i64::from(time.day()) - 1)
}

fn date<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part(args, |time| time.day().into())
}

fn day_of_week<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part(args, |time| time.weekday().to_sunday_zero_offset().into())
}

fn hours<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part_or_whole(args, |time| time.hour().into(), 3_600_000_000_000)
}

fn minutes<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part_or_whole(args, |time| time.minute().into(), 60_000_000_000)
}

fn seconds<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part_or_whole(args, |time| time.second().into(), 1_000_000_000)
}

fn milliseconds<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    part_or_whole(args, |time| time.millisecond().into(), 1_000_000)
}
