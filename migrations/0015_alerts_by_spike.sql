-- Why: retention, the sweep and a deleted spike look for the alert of a spike, and read every alert without an index.
-- Locks: alerts against writes while the index is made.
CREATE INDEX "alerts_spike" ON "alerts" USING btree ("spike_id");