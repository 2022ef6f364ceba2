-- Bytes of values and attributes that became history (each commit adds to it in the clock's row, which it writes in any case), and
-- of those that were swept: the difference is what is kept of history.
ALTER TABLE orlop.clock ADD COLUMN kept_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE orlop.compaction ADD COLUMN swept_bytes bigint NOT NULL DEFAULT 0;
UPDATE orlop.clock SET kept_bytes = (
    SELECT coalesce(sum(octet_length(c.value) + octet_length(c.attributes)), 0)
    FROM orlop.history h JOIN orlop.changes c ON c.revision = h.revision
) + (
    SELECT coalesce(sum(octet_length(c.value) + octet_length(c.attributes)), 0)
    FROM orlop.changes c WHERE c.revision > (SELECT m.swept FROM orlop.compaction m) AND c.action = 3
);
