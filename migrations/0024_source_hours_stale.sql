-- Why: every tick asks which counted hours got late events; there are few of them among all hours.
-- Locks: source_hours while the index is built.
CREATE INDEX "source_hours_stale" ON "source_hours" USING btree ("zone_id","starts_at") WHERE is_stale;
