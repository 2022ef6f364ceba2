//! File descriptor limits: raises the soft limit, and divides it between connections and everything else.

/// The upper bound of connections for any descriptor limit: each connection takes tens of kilobytes.
const MOST_CONNECTIONS: u64 = 10_000;

/// Descriptors reserved for the database, webhooks, listeners and files: an eighth of the limit, within these
/// bounds.
const RESERVE: std::ops::RangeInclusive<u64> = 64..=1024;

/// Raises the soft limit of open files to the hard limit, as the Go runtime does. Returns the resulting
/// limit.
pub fn raise_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files; the soft limit stays");
            current.unwrap_or(u64::MAX)
        }
    }
}

/// The number of connections for a limit of open files.
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

    const LOWERED: &str = "ORLOP_TEST_LOWERED_LIMIT";

    /// Runs itself in a process with a lower soft limit, which the others of this process do not get.
    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        if std::env::var_os(LOWERED).is_none() {
            let itself = std::env::current_exe().unwrap();
            let script = "ulimit -S -n 100 && exec \"$@\"";
            let test = "descriptors::tests::the_soft_limit_becomes_the_hard_one";
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", script, "sh"]).arg(itself).args(["--exact", test]).env(LOWERED, "1");
            let output = shell.output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
            return;
        }
        let limit = || rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let before = limit();
        assert_eq!(before.current, Some(100), "the shell has lowered it");
        assert_ne!(before.current, before.maximum, "there is something to raise");
        let raised = raise_limit();
        assert_eq!(limit().current, before.maximum);
        assert_eq!(before.maximum, Some(raised).filter(|limit| *limit < u64::MAX));
    }
}
