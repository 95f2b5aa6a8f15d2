-- Why: jobs list shows the expression, the last run and its result of every tick, as the processes report them.
-- Locks: replicas for a moment; the new column has a constant default.
ALTER TABLE "replicas" ADD COLUMN "ticks" jsonb DEFAULT '{}'::jsonb NOT NULL;
