-- All text is compared by bytes, whatever language the database was made for: that is the order of keys.

-- The newest revision. It starts at 1: to a Kubernetes client resourceVersion 0 means "any".
CREATE TABLE orlop.clock (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    revision bigint NOT NULL,
    at timestamptz NOT NULL
) WITH (fillfactor = 10);
INSERT INTO orlop.clock (revision, at) VALUES (1, clock_timestamp());

-- How far history is gone (compacted), and how far it has been removed (swept). Not in the clock's row, so that compaction
-- never holds up a commit.
CREATE TABLE orlop.compaction (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    compacted bigint NOT NULL,
    swept bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO orlop.compaction (compacted, swept) VALUES (0, 0);

-- The log. An object of a few KB stays in its row, as it is: PostgreSQL would compress it and put it elsewhere, which costs
-- more than it saves (see the commit that brought this file).
CREATE TABLE orlop.changes (
    revision bigint PRIMARY KEY,
    previous bigint NOT NULL,
    at timestamptz NOT NULL,
    version_at integer NOT NULL,
    action smallint NOT NULL,
    resource text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    uid text COLLATE "C" NOT NULL,
    attributes bytea NOT NULL,
    value bytea NOT NULL
) WITH (toast_tuple_target = 8160);
ALTER TABLE orlop.changes ALTER COLUMN value SET STORAGE EXTERNAL, ALTER COLUMN attributes SET STORAGE MAIN;
CREATE INDEX changes_of_resource ON orlop.changes (resource, revision);

-- The current version of each object. Pages have room, so that an update need not touch the index.
CREATE TABLE orlop.heads (
    revision bigint NOT NULL,
    resource text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITH (fillfactor = 80);

-- The versions that are no longer current.
CREATE TABLE orlop.history (
    revision bigint NOT NULL,
    superseded_by bigint NOT NULL,
    resource text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (resource, namespace, name, revision)
);

-- Labels and fields of the current versions, as numbers: of what is labelled, and of the value. No key, because different
-- texts may share a number.
CREATE TABLE orlop.entries (
    term bigint NOT NULL,
    value bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL
);
CREATE INDEX entries_in_order ON orlop.entries (term, value, namespace, name);

-- How many objects there are. A row without objects is removed by compaction.
CREATE TABLE orlop.counts (
    objects bigint NOT NULL,
    resource text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    PRIMARY KEY (resource, namespace)
) WITH (fillfactor = 50);
