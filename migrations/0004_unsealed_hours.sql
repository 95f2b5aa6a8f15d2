-- Why: the hours that are not sealed are read every minute, and nearly every row is a sealed hour.
-- Locks: coverage_windows against writes, for about a second per million hours.
CREATE INDEX "coverage_windows_unsealed" ON "coverage_windows" USING btree ("zone_id","starts_at") WHERE state <> 'sealed';