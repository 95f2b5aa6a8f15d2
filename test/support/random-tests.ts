import fc from "fast-check";

/** The gate draws the same cases each time, so that its result depends only on the change. The soak draws new seeds. */
const GATE_SEED = 20_261_122;

/** `TEST_SEED=n` selects other cases in every random test without a seed of its own. */
export const SEED = Number(process.env["TEST_SEED"] ?? GATE_SEED);
if (!Number.isSafeInteger(SEED))
  throw new Error(`TEST_SEED must be a whole number: ${process.env["TEST_SEED"]}`);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED });
