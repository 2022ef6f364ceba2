//! The statements of a list. Each is put together from a few fixed pieces, so there are some dozens of them, each prepared
//! once per session; input of clients is never part of the text.

use model::Revision;
use model::selector::{Requirement, Test};

use crate::listing::{Drive, PAGE_BYTES, Start};
use crate::postgres::limits::is_text;
use crate::postgres::readers::Query;
use crate::postgres::rows::integer;
use crate::postgres::terms;
use crate::types::ListQuery;

/// Source of the versions that were current at a revision and are superseded now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// By the changes since: few, so they can be sorted.
    Changes,
    /// By the history of each key, in key order.
    History,
}

/// The values that candidates bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// None.
    None,
    /// Values so small that one for each candidate fits in a page. Most pages have no others, and summing
    /// sizes costs a quarter of the statement.
    Small,
    /// The first, and those behind it as far as they fit in a page.
    Fitting,
}

/// Candidates for a page, in key order.
pub struct Candidates<'a> {
    pub query: &'a ListQuery,
    pub drive: &'a Drive<'a>,
    pub start: &'a Start,
    /// As of a revision, or as of now.
    pub past: Option<(Revision, Past)>,
    pub values: Values,
}

/// The parameters that most pieces need.
struct Common {
    resource: String,
    /// The start; `namespace` may be the only one of the list.
    namespace: String,
    name: String,
    at: Option<String>,
    limit: String,
}

impl Candidates<'_> {
    /// Rows of clock, mark, total, namespace, name, attributes, revision, uid, version_at, value. There is at
    /// least one row, without a name if there is no candidate.
    pub fn statement(&self, limit: usize) -> Query {
        let mut query = Query::new("");
        let common = Common {
            resource: query.bind(self.query.resource.as_str().to_owned()),
            namespace: query.bind(self.start.namespace.clone()),
            name: query.bind(self.start.name.clone()),
            at: self.past.map(|(at, _)| query.bind(integer(at))),
            limit: query.bind(i64::try_from(limit).unwrap_or(i64::MAX)),
        };
        let total = match &self.query.namespace {
            None => String::new(),
            Some(namespace) => format!("AND n.namespace = {}", query.bind(countable(namespace))),
        };
        let keys = self.keys(&mut query, &common);
        let attributes = if self.query.selector.is_empty() { "NULL::bytea" } else { "c.attributes" };
        let (columns, value) = match self.values {
            Values::None => ("", "NULL::bytea".to_owned()),
            Values::Small => {
                let share = query.bind(i32::try_from(PAGE_BYTES / limit.max(1)).unwrap_or(i32::MAX));
                (", c.value", format!("CASE WHEN octet_length(p.value) <= {share} THEN p.value END"))
            }
            Values::Fitting => {
                let most = query.bind(i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX));
                (BYTES, format!("CASE WHEN p.bytes < {most} THEN p.value END"))
            }
        };
        let resource = &common.resource;
        // The subqueries in the list of columns are run once, and one row is all that the candidates are joined with.
        query.push(format_args!(
            "SELECT (SELECT t.revision FROM clock t), (SELECT m.compacted FROM compaction m),
                (SELECT coalesce(sum(n.objects), 0)::bigint FROM counts n WHERE n.resource = {resource} {total}),
                p.namespace, p.name, p.attributes, p.revision, p.uid, p.version_at, {value}
            FROM (VALUES (true)) AS one LEFT JOIN LATERAL (
                SELECT k.namespace, k.name, k.revision, c.uid, c.version_at, {attributes} AS attributes {columns}
                FROM ({keys}) k
                LEFT JOIN LATERAL (SELECT * FROM changes c WHERE c.revision = k.revision OFFSET 0) c ON true
            ) p ON true"
        ));
        query
    }

    /// Namespace, name and revision of the candidates, in key order.
    fn keys(&self, query: &mut Query, common: &Common) -> String {
        let heads = self.heads(query, common);
        let Common { resource, at, limit, .. } = common;
        let (Some((_, past)), Some(at)) = (self.past, at) else { return heads };
        let superseded = match past {
            // Written such that only the index by resource has the order, of which it needs a part.
            Past::Changes => format!(
                "SELECT s.namespace, s.name, s.previous AS revision FROM (
                    SELECT c.namespace, c.name, c.previous FROM changes c
                    WHERE (c.resource, c.revision) > ({resource}, {at}) AND c.resource <= {resource}
                    ORDER BY c.resource, c.revision
                ) s WHERE s.previous BETWEEN 1 AND {at} AND {}",
                self.behind("s", common)
            ),
            Past::History => format!(
                "SELECT s.namespace, s.name, s.revision FROM history s
                WHERE s.resource = {resource} AND {} AND s.revision <= {at} AND s.superseded_by > {at}",
                self.behind("s", common)
            ),
        };
        format!(
            "SELECT v.namespace, v.name, v.revision FROM (
                ({heads}) UNION ALL ({superseded} ORDER BY s.namespace, s.name LIMIT {limit})
            ) v ORDER BY v.namespace, v.name LIMIT {limit}"
        )
    }

    /// The same for the heads, without those that are too new.
    fn heads(&self, query: &mut Query, common: &Common) -> String {
        let Common { resource, at, limit, namespace, .. } = common;
        let old = at.as_ref().map(|at| format!("AND h.revision <= {at}")).unwrap_or_default();
        let found = match self.drive {
            Drive::Scan => {
                let behind = self.behind("h", common);
                format!(
                    "heads h WHERE h.resource = {resource} AND {behind} {old} ORDER BY h.namespace, h.name"
                )
            }
            Drive::Names(names) => {
                let mut names: Vec<_> = names.iter().filter(|name| is_text(name)).cloned().collect();
                names.sort_unstable();
                names.dedup();
                let names = query.bind(names);
                let only = if self.start.confined {
                    format!("AND n.namespace = {namespace}")
                } else {
                    String::new()
                };
                let behind = self.behind("h", common);
                format!(
                    "unnest({names}::text[]) AS w (name)
                    CROSS JOIN LATERAL (SELECT n.namespace FROM counts n WHERE n.resource = {resource} {only} OFFSET 0) n
                    CROSS JOIN LATERAL (
                        SELECT h.namespace, h.name, h.revision FROM heads h
                        WHERE h.resource = {resource} AND h.namespace = n.namespace AND h.name = w.name OFFSET 0
                    ) h
                    WHERE {behind} {old} ORDER BY h.namespace, h.name"
                )
            }
            Drive::Few(requirement) => self.few(query, common, requirement, &old),
            Drive::Ordered(requirement, value) => {
                let term = query.bind(terms::of_requirement(&self.query.resource, requirement));
                let value = query.bind(terms::value(value));
                let behind = self.behind("e", common);
                let head = head_of_entry(resource);
                format!(
                    "entries e CROSS JOIN LATERAL ({head}) h
                    WHERE e.term = {term} AND e.value = {value} AND {behind} {old} ORDER BY e.namespace, e.name"
                )
            }
        };
        let of = if found.starts_with("entries e") { "e" } else { "h" };
        format!("SELECT {of}.namespace, {of}.name, h.revision FROM {found} LIMIT {limit}")
    }

    fn few(&self, query: &mut Query, common: &Common, requirement: &Requirement, old: &str) -> String {
        let term = query.bind(terms::of_requirement(&self.query.resource, requirement));
        let behind = self.behind("e", common);
        let head = head_of_entry(&common.resource);
        let Test::In(values) = &requirement.test else {
            return format!(
                "entries e CROSS JOIN LATERAL ({head}) h
                WHERE e.term = {term} AND {behind} {old} ORDER BY e.namespace, e.name"
            );
        };
        let values = query.bind(distinct(values));
        format!(
            "unnest({values}::bigint[]) AS w (value)
            CROSS JOIN LATERAL (
                SELECT e.namespace, e.name FROM entries e
                WHERE e.term = {term} AND e.value = w.value AND {behind} OFFSET 0
            ) e
            CROSS JOIN LATERAL (SELECT e.namespace, e.name, h.revision FROM ({head}) h OFFSET 0) h
            WHERE true {old} ORDER BY h.namespace, h.name"
        )
    }

    /// A condition: the row of a table lies behind the start of the list.
    fn behind(&self, table: &str, common: &Common) -> String {
        let Common { namespace, name, .. } = common;
        if self.start.confined {
            format!("{table}.namespace = {namespace} AND {table}.name > {name}")
        } else {
            format!("({table}.namespace, {table}.name) > ({namespace}, {name})")
        }
    }
}

/// A value, and the total size of those before it.
const BYTES: &str = ", c.value,
    coalesce(sum(octet_length(c.value)) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes";

/// The head of an entry. `OFFSET 0` keeps the planner from beginning with the heads.
fn head_of_entry(resource: &str) -> String {
    format!(
        "SELECT h.revision FROM heads h
        WHERE h.resource = {resource} AND h.namespace = e.namespace AND h.name = e.name OFFSET 0"
    )
}

/// Values as the index has them, each once.
fn distinct(values: &[String]) -> Vec<i64> {
    let mut values: Vec<_> = values.iter().map(|value| terms::value(value)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// A namespace that PostgreSQL can compare; one that it cannot hold has no objects, and neither has the empty
/// text here.
fn countable(namespace: &str) -> Option<String> {
    is_text(namespace).then(|| namespace.to_owned())
}

/// Rows of a requirement's index and the number of entries of one of its values, at most `cap`.
pub fn count(list: &ListQuery, start: &Start, requirements: &[&Requirement], cap: u64) -> Query {
    let mut query = Query::new("");
    let (mut places, mut keys, mut values) = (vec![], vec![], vec![]);
    for (place, requirement) in (0_i32..).zip(requirements) {
        let of_requirement: Vec<Option<i64>> = match &requirement.test {
            Test::In(values) => distinct(values).into_iter().map(Some).collect(),
            _ => vec![None],
        };
        for value in of_requirement {
            places.push(place);
            keys.push(terms::of_requirement(&list.resource, requirement));
            values.push(value);
        }
    }
    let (places, keys, values) = (query.bind(places), query.bind(keys), query.bind(values));
    let cap = query.bind(i64::try_from(cap).unwrap_or(i64::MAX));
    let only = if start.confined {
        format!("AND e.namespace = {}", query.bind(start.namespace.clone()))
    } else {
        String::new()
    };
    // All values of a term follow it, so a namespace does not narrow the range of a term alone.
    query.push(format_args!(
        "SELECT w.place, CASE WHEN w.value IS NULL THEN (
            SELECT count(*) FROM (SELECT FROM entries e WHERE e.term = w.term LIMIT {cap}) s
        ) ELSE (
            SELECT count(*) FROM (
                SELECT FROM entries e WHERE e.term = w.term AND e.value = w.value {only} LIMIT {cap}
            ) s
        ) END
        FROM unnest({places}::integer[], {keys}::bigint[], {values}::bigint[]) AS w (place, term, value)"
    ));
    query
}

/// Rows of index, revision, uid, version_at, value, clock, mark: one for each of these versions, in order. A
/// value is left out once those before it take too many bytes.
pub fn values(revisions: Vec<i64>) -> Query {
    let mut query = Query::new("");
    let (revisions, most) =
        (query.bind(revisions), query.bind(i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX)));
    query.push(format_args!(
        "SELECT p.place, p.revision, p.uid, p.version_at, CASE WHEN p.bytes < {most} THEN p.value END,
                (SELECT t.revision FROM clock t), (SELECT m.compacted FROM compaction m)
        FROM (
            SELECT w.place, w.revision, c.uid, c.version_at {BYTES}
            FROM unnest({revisions}::bigint[]) WITH ORDINALITY AS w (revision, place)
            LEFT JOIN LATERAL (SELECT * FROM changes c WHERE c.revision = w.revision OFFSET 0) c ON true
        ) p"
    ));
    query
}
