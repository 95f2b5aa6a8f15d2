import fc from "fast-check";

/** The gate draws the same cases each time: a change is judged, not the day's luck. Fresh seeds are the soak's. */
const GATE_SEED = 20_261_122;

/** `TEST_SEED=n` draws the cases that follow from n, in every random test that names no seed of its own. */
export const SEED = Number(process.env["TEST_SEED"] ?? GATE_SEED);
if (!Number.isSafeInteger(SEED))
  throw new Error(`TEST_SEED must be a whole number: ${process.env["TEST_SEED"]}`);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED });
