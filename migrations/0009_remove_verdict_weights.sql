-- Why: verdicts are judged with the shipped weights only; `verdict fit`, which wrote the table, is gone.
-- Locks: verdict_weights for a moment. No other table refers to it.
DROP TABLE "verdict_weights" CASCADE;
