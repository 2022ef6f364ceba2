-- The history that the log is of. Who finds that a part of it was lost (a promoted replica, a restored copy) writes a new one,
-- in the transaction that advances the clock past everything that anybody has seen: so all servers learn of it.
-- The other columns say where the database lived then: PostgreSQL's system identifier, its timeline, and the table of the
-- clock. They are unknown where PostgreSQL does not tell.
CREATE TABLE orlop.incarnation (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    incarnation uuid NOT NULL,
    system bigint,
    timeline bigint,
    relation bigint
);
INSERT INTO orlop.incarnation (incarnation) VALUES (gen_random_uuid());
