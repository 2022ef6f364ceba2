//! Durations in Go's notation.

use std::time::Duration;

/// Parses durations such as `1h2m3.5s`. A negative duration becomes zero.
pub fn parse(text: &str) -> Option<Duration> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..digits].parse().ok()?;
        let unit =
            rest[digits..].find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len() - digits);
        seconds += amount
            * match &rest[digits..digits + unit] {
                "ns" => 1e-9,
                "us" | "µs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[digits + unit..];
    }
    let is_something = !text.trim_start_matches(['-', '+']).is_empty();
    is_something.then(|| Duration::try_from_secs_f64((sign * seconds).max(0.0)).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_writes_them() {
        for (text, millis) in
            [("1m0s", 60_000), ("1h2m3.5s", 3_723_500), ("0", 0), ("300ms", 300), ("-5s", 0), (".5s", 500)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "1x", "1.2.3s", "1m5", "µ"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
