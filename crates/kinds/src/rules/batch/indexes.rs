//! Index lists of indexed Jobs: `0,2-4`.

use model::error::quote;

/// The number of indexes in a list; an error if it is invalid or has an index of `completions` or more.
pub(super) fn count(list: &str, completions: i64) -> Result<i64, String> {
    let mut last = None;
    let mut total = 0;
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(out_of_order(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that two lists share; invalid entries are skipped.
pub(super) fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let read = |list: &str| -> Vec<(i64, i64)> {
        list.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (one, other) = (read(one), read(other));
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some((a, b)), Some((c, d))) = (left.peek(), right.peek()) {
        if a <= d && c <= b {
            return Some(*a.max(c));
        }
        if a <= c {
            left.next();
        } else {
            right.next();
        }
    }
    None
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    if limits.len() > 2 {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts \
             separated by '-'",
            quote(part)
        ));
    }
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {}", quote(text))),
        Ok(index) if index >= completions => Err(format!("too large index: {}", quote(text))),
        Ok(index) => Ok(index),
    };
    let first = index(limits[0])?;
    match limits.get(1).map(|text| index(text)).transpose()? {
        Some(end) if first >= end => Err(out_of_order(first, end)),
        Some(end) => Ok((first, end)),
        None => Ok((first, first)),
    }
}

fn out_of_order(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_of_a_list_are_counted() {
        for (list, total) in [("", 0), ("0", 1), ("0,2-4", 4), ("1-2,4-5,9", 5)] {
            assert_eq!(count(list, 10), Ok(total), "{list}");
        }
    }

    #[test]
    fn malformed_lists_are_refused() {
        for (list, problem) in [
            ("a", "cannot convert string to integer for index: \"a\""),
            ("1,", "cannot convert string to integer for index: \"\""),
            ("10", "too large index: \"10\""),
            ("1-10", "too large index: \"10\""),
            ("2-1", "non-increasing order, previous: 2, current: 1"),
            ("1-3,3", "non-increasing order, previous: 3, current: 3"),
        ] {
            assert_eq!(count(list, 10), Err(problem.to_owned()), "{list}");
        }
    }

    #[test]
    fn the_first_common_index_is_found() {
        for (one, other, found) in [
            ("0-3", "2", Some(2)),
            ("0,5-9", "1-4,8", Some(8)),
            ("0-1", "2-3", None),
            ("", "1", None),
            ("x,4", "4", Some(4)),
        ] {
            assert_eq!(overlap(one, other, 10), found, "{one} {other}");
        }
    }
}
