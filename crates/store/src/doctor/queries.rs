//! Checks as queries: each returns one line of text per violation.

use super::RESTORE;

/// One check.
pub struct Query {
    /// The invariant, as a person reads it.
    pub check: &'static str,
    pub remedy: &'static str,
    pub sql: String,
}

/// The names that differ between the engines.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The table with the compaction mark.
    pub marks: &'static str,
}

const OBJECT: &str = "h.resource || ' ' || h.namespace || '/' || h.name";

/// The same object in two rows.
const SAME: &str = "c.resource = h.resource AND c.namespace = h.namespace AND c.name = h.name";

/// The checks that a query can make, in order of dependency.
pub fn all(dialect: Dialect) -> Vec<Query> {
    let mut queries = of_the_clock(dialect);
    queries.extend(of_the_heads());
    queries.extend(of_history(dialect));
    queries.push(of_the_counts());
    queries
}

fn of_the_clock(Dialect { marks }: Dialect) -> Vec<Query> {
    let (clock, mark) = ("(SELECT revision FROM clock)", format!("(SELECT compacted FROM {marks})"));
    vec![
        Query {
            check: "the clock is not behind the log",
            remedy: "move it on with `orlop restore --advance`",
            sql: format!(
                "SELECT 'the clock is at ' || {clock} || ', the log at ' || max(c.revision) FROM changes c
                 HAVING max(c.revision) > {clock}"
            ),
        },
        Query {
            check: "the compaction mark is not ahead of the clock",
            remedy: "move the clock on with `orlop restore --advance`",
            sql: format!(
                "SELECT 'the clock is at ' || {clock} || ', the mark at ' || m.compacted || ', swept to ' || m.swept
                 FROM {marks} m WHERE m.compacted > {clock} OR m.swept > m.compacted"
            ),
        },
        Query {
            // The first revision of a database has no change.
            check: "the log has no gap above the compaction mark",
            remedy: "let all clients read anew with `orlop restore --advance`; lost changes themselves are only in a backup",
            sql: format!(
                "SELECT 'above ' || {mark} || ' there are ' || n.found || ' changes, the clock is at ' || {clock}
                 FROM (SELECT count(*) AS found FROM changes WHERE revision > {mark}) n
                 WHERE n.found <> {clock} - CASE WHEN {mark} > 1 THEN {mark} ELSE 1 END"
            ),
        },
    ]
}

fn of_the_heads() -> Vec<Query> {
    let last = "(SELECT resource, namespace, name, max(revision) AS revision FROM changes
                 GROUP BY resource, namespace, name)";
    vec![
        Query {
            check: "every object is in the log",
            remedy: RESTORE,
            sql: format!(
                "SELECT {OBJECT} || ' at ' || h.revision FROM heads h LEFT JOIN changes c ON c.revision = h.revision
                 WHERE c.revision IS NULL OR NOT ({SAME}) OR c.action = 3 LIMIT 4"
            ),
        },
        Query {
            check: "every object is at the last change of its key",
            remedy: RESTORE,
            sql: format!(
                "SELECT {OBJECT} || ' is at ' || h.revision || ', its last change at ' || c.revision
                 FROM {last} c JOIN heads h ON {SAME} WHERE h.revision <> c.revision LIMIT 4"
            ),
        },
        Query {
            check: "every key whose last change is no deletion has an object",
            remedy: RESTORE,
            sql: format!(
                "SELECT {OBJECT} || ' was last changed at ' || h.revision
                 FROM {last} h JOIN changes l ON l.revision = h.revision LEFT JOIN heads c ON {SAME}
                 WHERE l.action <> 3 AND c.revision IS NULL LIMIT 4"
            ),
        },
    ]
}

fn of_history(Dialect { marks }: Dialect) -> Vec<Query> {
    let swept = format!("(SELECT swept FROM {marks})");
    vec![
        Query {
            check: "every change follows the version that it replaced",
            remedy: RESTORE,
            sql: format!(
                "SELECT {OBJECT} || ': ' || h.revision || ' replaced ' || h.previous
                 FROM changes h LEFT JOIN changes c ON c.revision = h.previous
                 WHERE h.previous > 0 AND h.revision > {swept}
                   AND (c.revision IS NULL OR NOT ({SAME}) OR h.previous >= h.revision) LIMIT 4"
            ),
        },
        Query {
            check: "every replaced version is in the history",
            remedy: RESTORE,
            sql: format!(
                "SELECT {OBJECT} || ': ' || h.previous || ' was replaced by ' || h.revision
                 FROM changes h LEFT JOIN history c ON {SAME} AND c.revision = h.previous
                 WHERE h.previous > 0 AND h.revision > {swept}
                   AND (c.revision IS NULL OR c.superseded_by <> h.revision) LIMIT 4"
            ),
        },
        Query {
            check: "every version in the history was replaced",
            remedy: RESTORE,
            sql: format!(
                "SELECT {OBJECT} || ': ' || h.revision || ' was replaced by ' || h.superseded_by
                 FROM history h LEFT JOIN changes c ON c.revision = h.superseded_by
                 WHERE c.revision IS NULL OR c.previous <> h.revision LIMIT 4"
            ),
        },
    ]
}

fn of_the_counts() -> Query {
    let actual = "(SELECT resource, namespace, count(*) AS objects FROM heads GROUP BY resource, namespace)";
    let same = "h.resource = c.resource AND h.namespace = c.namespace";
    let of = "h.resource || ' in \"' || h.namespace || '\": '";
    Query {
        check: "the counts are those of the objects",
        remedy: RESTORE,
        sql: format!(
            "SELECT {of} || 'counted ' || coalesce(c.objects, 0) || ', there are ' || h.objects
             FROM {actual} h LEFT JOIN counts c ON {same} WHERE c.objects IS NULL OR c.objects <> h.objects
             UNION ALL
             SELECT {of} || 'counted ' || h.objects || ', there are none'
             FROM counts h LEFT JOIN {actual} c ON {same} WHERE c.objects IS NULL AND h.objects <> 0 LIMIT 4"
        ),
    }
}
