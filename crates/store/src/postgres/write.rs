//! The statement of a commit: one for all tables, of the parts that a batch needs.
//!
//! Nothing here joins a table with an array in a way that leaves the planner a choice. Look-ups are a LATERAL
//! that OFFSET 0 keeps in its place, deletes go by physical row (ctid), and updates are an insert with a
//! conflict. The lock of the log keeps the rows in place. All parts see the state before the batch, and no
//! two touch the same row.

use tokio_postgres::types::ToSql;

use super::rows::integer;
use super::terms;
use crate::plan::{BatchPlan, Entry, HeadMove};

/// The statement that loads the clock and the heads of a batch's keys. Its four parameters are arrays, or for one key alone
/// plain values, which are faster.
pub fn heads(keys: usize) -> &'static str {
    if keys == 1 { HEAD } else { HEADS }
}

macro_rules! heads {
    ($wanted:literal) => {
        concat!(
            "
    SELECT (SELECT t.revision FROM clock t), f.place, f.revision, f.uid, f.attributes, f.value, f.bytes,
           (SELECT i.incarnation::text FROM incarnation i)
    FROM (VALUES (true)) AS one LEFT JOIN LATERAL (
        SELECT w.place, c.revision, c.uid, c.attributes, CASE WHEN w.whole THEN c.value END AS value,
               (octet_length(c.value) + octet_length(c.attributes))::bigint AS bytes
        FROM ",
            $wanted,
            " AS w (resource, namespace, name, whole, place)
        CROSS JOIN LATERAL (
            SELECT h.revision FROM heads h
            WHERE h.resource = w.resource AND h.namespace = w.namespace AND h.name = w.name OFFSET 0
        ) h
        LEFT JOIN LATERAL (
            SELECT c.revision, c.uid, c.attributes, c.value FROM changes c WHERE c.revision = h.revision OFFSET 0
        ) c ON true
    ) f ON true"
        )
    };
}

const HEAD: &str = heads!("(VALUES ($1::text, $2::text, $3::text, $4::boolean, 1::bigint))");

const HEADS: &str = heads!("unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) WITH ORDINALITY");

/// The statement that writes a plan.
pub struct Write<'a> {
    /// Its text, of which there are a few dozen: each is prepared once.
    pub sql: String,
    parameters: Vec<Box<dyn ToSql + Sync + Send + 'a>>,
    /// One change has at most one row in every table but the index: plain values are faster than arrays.
    is_one: bool,
}

impl<'a> Write<'a> {
    /// For a plan that changes something.
    pub fn of(plan: &'a BatchPlan) -> Self {
        let is_one = plan.changes.len() == 1;
        let mut write = Self { sql: String::from("WITH "), parameters: Vec::new(), is_one };
        write.append(plan);
        write.set_heads("created", plan.heads.iter().filter(|head| !head.existed), "");
        write.set_heads(
            "moved",
            plan.heads.iter().filter(|head| head.existed),
            "ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision",
        );
        write.remove_heads(plan);
        write.keep(plan);
        write.unindex(plan);
        write.index(plan);
        write.count(plan);
        let revision = write.bind(integer(plan.revision));
        let kept = write.bind(i64::try_from(plan.history_bytes).unwrap_or(i64::MAX));
        write.sql.push_str(&format!(
            "UPDATE clock SET revision = {revision}, kept_bytes = kept_bytes + {kept}, at = statement_timestamp() WHERE id
             RETURNING pg_notify('orlop', {revision}::bigint::text)"
        ));
        write
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.parameters.iter().map(|parameter| &**parameter as &(dyn ToSql + Sync)).collect()
    }

    fn bind(&mut self, value: impl ToSql + Sync + Send + 'a) -> String {
        self.parameters.push(Box::new(value));
        format!("${}", self.parameters.len())
    }

    fn part(&mut self, name: &str, sql: &str) {
        if self.sql.len() > "WITH ".len() {
            self.sql.push_str(", ");
        }
        self.sql.push_str(&format!("{name} AS ({sql}) "));
    }

    /// A column of the rows that a part writes: an array, or for one row alone a plain value.
    fn column<T: ToSql + Sync + Send + 'a>(&mut self, kind: &str, values: impl Iterator<Item = T>) -> String {
        let mut values: Vec<T> = values.collect();
        if !self.is_one {
            return format!("{}::{kind}[]", self.bind(values));
        }
        format!("{}::{kind}", self.bind(values.pop()))
    }

    /// The rows of these columns.
    fn rows(&self, columns: &[String]) -> String {
        if self.is_one { format!("(VALUES ({}))", columns.join(", ")) } else { unnested(columns) }
    }

    fn append(&mut self, plan: &'a BatchPlan) {
        let changes = || plan.changes.iter();
        let columns = [
            self.column("bigint", changes().map(|change| integer(change.revision))),
            self.column("bigint", changes().map(|change| integer(change.previous))),
            self.column(
                "integer",
                changes().map(|change| i32::try_from(change.version_at).unwrap_or(i32::MAX)),
            ),
            self.column("smallint", changes().map(|change| change.action.code())),
            self.column("text", changes().map(|change| change.key.resource.as_str())),
            self.column("text", changes().map(|change| &*change.key.namespace)),
            self.column("text", changes().map(|change| &*change.key.name)),
            self.column("text", changes().map(|change| &*change.uid.0)),
            self.column("bytea", changes().map(|change| change.attributes.to_bytes())),
            self.column("bytea", changes().map(|change| &change.value[..])),
        ];
        let rows = self.rows(&columns);
        self.part(
            "appended",
            &format!(
                "INSERT INTO changes
                    (at, revision, previous, version_at, action, resource, namespace, name, uid, attributes, value)
                SELECT statement_timestamp(), w.* FROM {rows} AS w"
            ),
        );
    }

    fn set_heads(&mut self, part: &str, heads: impl Iterator<Item = &'a HeadMove> + Clone, conflict: &str) {
        let heads = heads.filter_map(|head| Some((&head.key, head.revision?)));
        if heads.clone().next().is_none() {
            return;
        }
        let columns = [
            self.column("bigint", heads.clone().map(|(_, revision)| integer(revision))),
            self.column("text", heads.clone().map(|(key, _)| key.resource.as_str())),
            self.column("text", heads.clone().map(|(key, _)| &*key.namespace)),
            self.column("text", heads.map(|(key, _)| &*key.name)),
        ];
        let rows = self.rows(&columns);
        self.part(
            part,
            &format!(
                "INSERT INTO heads (revision, resource, namespace, name) SELECT w.* FROM {rows} AS w {conflict}"
            ),
        );
    }

    fn remove_heads(&mut self, plan: &'a BatchPlan) {
        let removed = || plan.heads.iter().filter(|head| head.revision.is_none()).map(|head| &head.key);
        if removed().next().is_none() {
            return;
        }
        let columns = [
            self.column("text", removed().map(|key| key.resource.as_str())),
            self.column("text", removed().map(|key| &*key.namespace)),
            self.column("text", removed().map(|key| &*key.name)),
        ];
        let rows = self.rows(&columns);
        self.part(
            "removed",
            &format!(
                "DELETE FROM heads WHERE ctid = ANY (ARRAY (
                    SELECT h.ctid FROM {rows} AS w (resource, namespace, name) CROSS JOIN LATERAL (
                        SELECT h.ctid FROM heads h
                        WHERE h.resource = w.resource AND h.namespace = w.namespace AND h.name = w.name OFFSET 0
                    ) h
                ))"
            ),
        );
    }

    fn keep(&mut self, plan: &'a BatchPlan) {
        if plan.history.is_empty() {
            return;
        }
        let history = || plan.history.iter();
        let columns = [
            self.column("bigint", history().map(|old| integer(old.revision))),
            self.column("bigint", history().map(|old| integer(old.by))),
            self.column("text", history().map(|old| old.key.resource.as_str())),
            self.column("text", history().map(|old| &*old.key.namespace)),
            self.column("text", history().map(|old| &*old.key.name)),
        ];
        let rows = self.rows(&columns);
        self.part(
            "kept",
            &format!(
                "INSERT INTO history (revision, superseded_by, resource, namespace, name)
                SELECT w.* FROM {rows} AS w"
            ),
        );
    }

    fn unindex(&mut self, plan: &'a BatchPlan) {
        let Some(rows) = self.entries(plan, |head| &head.removed) else { return };
        self.part(
            "unindexed",
            &format!(
                "DELETE FROM entries WHERE ctid = ANY (ARRAY (
                    SELECT e.ctid FROM {rows} AS w (term, value, namespace, name) CROSS JOIN LATERAL (
                        SELECT e.ctid FROM entries e
                        WHERE e.term = w.term AND e.value = w.value AND e.namespace = w.namespace AND e.name = w.name
                        LIMIT 1
                    ) e
                ))"
            ),
        );
    }

    fn index(&mut self, plan: &'a BatchPlan) {
        let Some(rows) = self.entries(plan, |head| &head.added) else { return };
        self.part(
            "indexed",
            &format!("INSERT INTO entries (term, value, namespace, name) SELECT w.* FROM {rows} AS w"),
        );
    }

    /// An object has any number of entries, so they are always arrays.
    fn entries(&mut self, plan: &'a BatchPlan, which: impl Fn(&HeadMove) -> &[Entry]) -> Option<String> {
        let (mut terms, mut values, mut namespaces, mut names) = (vec![], vec![], vec![], vec![]);
        for head in &plan.heads {
            for entry in which(head) {
                terms.push(terms::of_entry(&head.key.resource, entry));
                values.push(terms::value(&entry.value));
                namespaces.push(&*head.key.namespace);
                names.push(&*head.key.name);
            }
        }
        if names.is_empty() {
            return None;
        }
        Some(unnested(&[
            format!("{}::bigint[]", self.bind(terms)),
            format!("{}::bigint[]", self.bind(values)),
            format!("{}::text[]", self.bind(namespaces)),
            format!("{}::text[]", self.bind(names)),
        ]))
    }

    fn count(&mut self, plan: &'a BatchPlan) {
        if plan.counts.is_empty() {
            return;
        }
        let counts = || plan.counts.iter();
        let columns = [
            self.column("bigint", counts().map(|count| count.delta)),
            self.column("text", counts().map(|count| count.resource.as_str())),
            self.column("text", counts().map(|count| &*count.namespace)),
        ];
        let rows = self.rows(&columns);
        self.part(
            "counted",
            &format!(
                "INSERT INTO counts (objects, resource, namespace) SELECT w.* FROM {rows} AS w
                ON CONFLICT (resource, namespace) DO UPDATE SET objects = counts.objects + excluded.objects"
            ),
        );
    }
}

/// The rows of arrays. Not `unnest` with several arrays, which copies all of them before it returns the first
/// row.
fn unnested(arrays: &[String]) -> String {
    let columns: Vec<_> = arrays.iter().map(|array| format!("unnest({array})")).collect();
    format!("(SELECT {})", columns.join(", "))
}
