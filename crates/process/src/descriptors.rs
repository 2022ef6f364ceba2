//! File descriptors: as many as the system allows, and how many of them are for connections.

/// The most connections, however many descriptors there are: each takes tens of kilobytes.
const MOST_CONNECTIONS: u64 = 10_000;

/// Descriptors that are kept for the database, webhooks, listeners and files: an eighth, within these bounds.
const RESERVE: std::ops::RangeInclusive<u64> = 64..=1024;

/// Raises the soft limit of open files to the hard limit, as programs in Go do. Returns the limit that holds then.
pub fn raise_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            current.unwrap_or(u64::MAX)
        }
    }
}

/// How many connections a process takes that may open so many files.
#[must_use]
pub fn connections_within(limit: u64) -> usize {
    let reserve = (limit / 8).clamp(*RESERVE.start(), *RESERVE.end());
    let left = limit.saturating_sub(reserve).clamp(1, MOST_CONNECTIONS);
    usize::try_from(left).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        for (limit, expected) in [
            (0, 1),
            (64, 1),
            (256, 192),
            (1024, 896),
            (4096, 3584),
            (10_000, 8976),
            (1 << 20, 10_000),
            (u64::MAX, 10_000),
        ] {
            assert_eq!(connections_within(limit), expected, "{limit}");
        }
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = raise_limit();
        let now = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!((now.current, now.current), (now.maximum, Some(raised).filter(|limit| *limit < u64::MAX)));
    }
}
