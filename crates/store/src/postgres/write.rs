//! The statements of a commit: one per table, with an array per column.
//!
//! Nothing here joins a table with an array in a way that leaves the planner a choice. What looks rows up does it in a LATERAL
//! that OFFSET 0 keeps in its place, what deletes does it by physical place, and what changes a row does it as an insert with
//! a conflict. The lock of the log keeps the places still.

use model::Revision;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use super::limits::{indexed_key, indexed_value};
use super::rows::integer;
use crate::plan::{Entry, HeadMove, Plan, target_letter};

const HEADS: &str = "
    SELECT t.revision, f.place, f.revision, f.uid, f.attributes, f.value
    FROM clock t LEFT JOIN LATERAL (
        SELECT w.place, c.revision, c.uid, c.attributes, CASE WHEN w.whole THEN c.value END AS value
        FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[])
            WITH ORDINALITY AS w (resource, namespace, name, whole, place)
        CROSS JOIN LATERAL (
            SELECT h.revision FROM heads h
            WHERE h.resource = w.resource AND h.namespace = w.namespace AND h.name = w.name OFFSET 0
        ) h
        LEFT JOIN LATERAL (
            SELECT c.revision, c.uid, c.attributes, c.value FROM changes c WHERE c.revision = h.revision OFFSET 0
        ) c ON true
    ) f ON true";

const APPEND: &str = "
    INSERT INTO changes
        (revision, previous, at, version_at, action, resource, namespace, name, uid, attributes, value)
    SELECT $1::bigint + c.place, c.previous, statement_timestamp(), c.version_at, c.action, c.resource, c.namespace,
           c.name, c.uid, c.attributes, c.value
    FROM unnest($2::bigint[], $3::integer[], $4::smallint[], $5::text[], $6::text[], $7::text[], $8::text[],
                $9::bytea[], $10::bytea[])
        WITH ORDINALITY
        AS c (previous, version_at, action, resource, namespace, name, uid, attributes, value, place)";

const CREATE: &str = "
    INSERT INTO heads (revision, resource, namespace, name)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])";

const MOVE: &str = "
    INSERT INTO heads (revision, resource, namespace, name)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])
    ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision";

const REMOVE: &str = "
    DELETE FROM heads WHERE ctid = ANY (ARRAY (
        SELECT h.ctid FROM unnest($1::text[], $2::text[], $3::text[]) AS w (resource, namespace, name)
        CROSS JOIN LATERAL (
            SELECT h.ctid FROM heads h
            WHERE h.resource = w.resource AND h.namespace = w.namespace AND h.name = w.name OFFSET 0
        ) h
    ))";

const KEEP: &str = "
    INSERT INTO history (revision, superseded_by, resource, namespace, name)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[])";

const UNINDEX: &str = "
    DELETE FROM entries WHERE ctid = ANY (ARRAY (
        SELECT e.ctid
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
            AS w (resource, target, key, value, namespace, name)
        CROSS JOIN LATERAL (
            SELECT e.ctid FROM entries e
            WHERE e.resource = w.resource AND e.target = w.target AND e.key = w.key AND e.value = w.value
              AND e.namespace = w.namespace AND e.name = w.name OFFSET 0
        ) e
    ))";

const INDEX: &str = "
    INSERT INTO entries (resource, target, key, value, namespace, name)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])";

const COUNT: &str = "
    INSERT INTO counts (objects, resource, namespace) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
    ON CONFLICT (resource, namespace) DO UPDATE SET objects = counts.objects + excluded.objects";

/// An empty namespace has no row: lists by name go through the rows.
const UNCOUNT: &str = "
    DELETE FROM counts WHERE ctid = ANY (ARRAY (
        SELECT n.ctid FROM unnest($1::text[], $2::text[]) AS w (resource, namespace)
        CROSS JOIN LATERAL (
            SELECT n.ctid FROM counts n
            WHERE n.resource = w.resource AND n.namespace = w.namespace AND n.objects = 0 OFFSET 0
        ) n
    ))";

const TICK: &str = "
    UPDATE clock SET revision = $1, at = statement_timestamp() WHERE id
    RETURNING pg_notify('orlop', $1::bigint::text)";

/// The statements of a commit, prepared.
pub struct Statements {
    /// The clock, and the heads of a batch's keys.
    pub heads: Statement,
    append: Statement,
    create: Statement,
    r#move: Statement,
    remove: Statement,
    keep: Statement,
    unindex: Statement,
    index: Statement,
    count: Statement,
    uncount: Statement,
    tick: Statement,
}

impl Statements {
    /// Prepares them, in one trip.
    pub async fn prepare(client: &Client) -> Result<Self, Error> {
        let (heads, append, create, r#move, remove, keep, unindex, index, count, uncount, tick) = futures::try_join!(
            client.prepare(HEADS),
            client.prepare(APPEND),
            client.prepare(CREATE),
            client.prepare(MOVE),
            client.prepare(REMOVE),
            client.prepare(KEEP),
            client.prepare(UNINDEX),
            client.prepare(INDEX),
            client.prepare(COUNT),
            client.prepare(UNCOUNT),
            client.prepare(TICK),
        )?;
        Ok(Self { heads, append, create, r#move, remove, keep, unindex, index, count, uncount, tick })
    }
}

/// Writes a plan and commits, in one trip.
pub async fn apply(client: &Client, statements: &Statements, plan: &Plan) -> Result<(), Error> {
    let created = || plan.heads.iter().filter(|head| !head.existed);
    let moved = || plan.heads.iter().filter(|head| head.existed);
    // `join!` sends in this order, and what a statement needs comes before it: an entry may be removed and added again.
    let (append, create, r#move, remove, keep, unindex, index, count, uncount, tick, commit) = futures::join!(
        append(client, statements, plan),
        set_heads(client, &statements.create, created()),
        set_heads(client, &statements.r#move, moved()),
        remove_heads(client, &statements.remove, plan),
        keep(client, &statements.keep, plan),
        entries(client, &statements.unindex, plan, |head| &head.removed),
        entries(client, &statements.index, plan, |head| &head.added),
        count(client, &statements.count, plan),
        uncount(client, &statements.uncount, plan),
        tick(client, &statements.tick, plan.revision),
        client.batch_execute("COMMIT"),
    );
    // The first error is the reason; those behind it only say that the transaction had failed.
    [append, create, r#move, remove, keep, unindex, index, count, uncount, tick, commit].into_iter().collect()
}

async fn append(client: &Client, statements: &Statements, plan: &Plan) -> Result<(), Error> {
    let changes = &plan.changes;
    let before = integer(plan.revision) - i64::try_from(changes.len()).unwrap_or(i64::MAX);
    let previous: Vec<_> = changes.iter().map(|change| integer(change.previous)).collect();
    let version_at: Vec<_> =
        changes.iter().map(|change| i32::try_from(change.version_at).unwrap_or(i32::MAX)).collect();
    let action: Vec<_> = changes.iter().map(|change| change.action.code()).collect();
    let resource: Vec<_> = changes.iter().map(|change| change.key.resource.as_str()).collect();
    let namespace: Vec<_> = changes.iter().map(|change| &*change.key.namespace).collect();
    let name: Vec<_> = changes.iter().map(|change| &*change.key.name).collect();
    let uid: Vec<_> = changes.iter().map(|change| &*change.uid.0).collect();
    let attributes: Vec<_> = changes.iter().map(|change| change.attributes.to_bytes()).collect();
    let value: Vec<_> = changes.iter().map(|change| &change.value[..]).collect();
    let columns: &[&(dyn ToSql + Sync)] =
        &[&before, &previous, &version_at, &action, &resource, &namespace, &name, &uid, &attributes, &value];
    client.execute(&statements.append, columns).await.map(drop)
}

async fn set_heads(
    client: &Client,
    statement: &Statement,
    heads: impl Iterator<Item = &HeadMove>,
) -> Result<(), Error> {
    let (mut revisions, mut resources, mut namespaces, mut names) = (vec![], vec![], vec![], vec![]);
    for (head, revision) in heads.filter_map(|head| head.revision.map(|revision| (head, revision))) {
        revisions.push(integer(revision));
        resources.push(head.key.resource.as_str());
        namespaces.push(&*head.key.namespace);
        names.push(&*head.key.name);
    }
    if revisions.is_empty() {
        return Ok(());
    }
    client.execute(statement, &[&revisions, &resources, &namespaces, &names]).await.map(drop)
}

async fn remove_heads(client: &Client, statement: &Statement, plan: &Plan) -> Result<(), Error> {
    let (mut resources, mut namespaces, mut names) = (vec![], vec![], vec![]);
    for HeadMove { key, .. } in plan.heads.iter().filter(|head| head.revision.is_none()) {
        resources.push(key.resource.as_str());
        namespaces.push(&*key.namespace);
        names.push(&*key.name);
    }
    if names.is_empty() {
        return Ok(());
    }
    client.execute(statement, &[&resources, &namespaces, &names]).await.map(drop)
}

async fn keep(client: &Client, statement: &Statement, plan: &Plan) -> Result<(), Error> {
    if plan.history.is_empty() {
        return Ok(());
    }
    let revisions: Vec<_> = plan.history.iter().map(|old| integer(old.revision)).collect();
    let by: Vec<_> = plan.history.iter().map(|old| integer(old.by)).collect();
    let resources: Vec<_> = plan.history.iter().map(|old| old.key.resource.as_str()).collect();
    let namespaces: Vec<_> = plan.history.iter().map(|old| &*old.key.namespace).collect();
    let names: Vec<_> = plan.history.iter().map(|old| &*old.key.name).collect();
    client.execute(statement, &[&revisions, &by, &resources, &namespaces, &names]).await.map(drop)
}

async fn entries(
    client: &Client,
    statement: &Statement,
    plan: &Plan,
    which: impl Fn(&HeadMove) -> &[Entry],
) -> Result<(), Error> {
    let (mut resources, mut targets, mut keys) = (vec![], vec![], vec![]);
    let (mut values, mut namespaces, mut names) = (vec![], vec![], vec![]);
    for head in &plan.heads {
        for entry in which(head) {
            let Some(key) = indexed_key(&entry.key) else { continue };
            resources.push(head.key.resource.as_str());
            targets.push(target_letter(entry.target));
            keys.push(key);
            values.push(indexed_value(&entry.value));
            namespaces.push(&*head.key.namespace);
            names.push(&*head.key.name);
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    client.execute(statement, &[&resources, &targets, &keys, &values, &namespaces, &names]).await.map(drop)
}

async fn count(client: &Client, statement: &Statement, plan: &Plan) -> Result<(), Error> {
    if plan.counts.is_empty() {
        return Ok(());
    }
    let deltas: Vec<_> = plan.counts.iter().map(|count| count.delta).collect();
    let resources: Vec<_> = plan.counts.iter().map(|count| count.resource.as_str()).collect();
    let namespaces: Vec<_> = plan.counts.iter().map(|count| &*count.namespace).collect();
    client.execute(statement, &[&deltas, &resources, &namespaces]).await.map(drop)
}

async fn uncount(client: &Client, statement: &Statement, plan: &Plan) -> Result<(), Error> {
    let fewer: Vec<_> = plan.counts.iter().filter(|count| count.delta < 0).collect();
    if fewer.is_empty() {
        return Ok(());
    }
    let resources: Vec<_> = fewer.iter().map(|count| count.resource.as_str()).collect();
    let namespaces: Vec<_> = fewer.iter().map(|count| &*count.namespace).collect();
    client.execute(statement, &[&resources, &namespaces]).await.map(drop)
}

async fn tick(client: &Client, statement: &Statement, revision: Revision) -> Result<(), Error> {
    client.execute(statement, &[&integer(revision)]).await.map(drop)
}
