-- Why: a record may be kept under another time than its event, and is found by the time under which the event is stored.
-- Locks: event_aliases while the index is built.
CREATE INDEX "event_aliases_kept" ON "event_aliases" USING btree ("zone_id","kept_at","log_id");