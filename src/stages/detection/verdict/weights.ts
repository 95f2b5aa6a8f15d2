import { z } from "zod";
import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictFeature } from "#model/kinds.ts";
import type { Features } from "#model/verdict.ts";

const perClass = z.record(z.enum(VERDICT_CLASSES), z.number().min(-50).max(50));

/** Log odds of the classes. A number counts by its distance from one half; one that is not known counts as its mean. */
export const weights = z.object({
  start: perClass,
  features: z.record(z.enum(VERDICT_FEATURES), perClass),
  means: z.record(z.enum(VERDICT_FEATURES), z.number().min(0).max(1)),
});
export type Weights = Readonly<z.output<typeof weights>>;

/** Weights in the order of `VERDICT_CLASSES`. */
const START = [3, -2.5, -4, 1, -1.5];
/** The same, and the mean. */
const TABLE: Readonly<Record<VerdictFeature, readonly number[]>> = {
  spread: [2.5, -2.5, 0.75, -2, 0.5, 0.42],
  usualAsn: [-3, 2, -1.5, 2.5, 0.5, 0.62],
  usualJa4: [1.25, 0, 0.75, -1.75, -0.5, 0.78],
  dirty: [1, -4, 4.5, -0.5, -1, 0.27],
  rulesPerIp: [0, 2.5, -3.25, 1, -0.5, 0.4],
  knownPath: [-0.5, 2, -4.5, 1.5, 1.5, 0.88],
  onePath: [4.5, 4.5, -9.5, 5, -3, 0.67],
  session: [-2, 4.5, -2, 2, -3, 0.4],
  referer: [2, 1.5, -5.5, 1.5, -0.5, 0.31],
  idiom: [4.5, -1.5, 2, -3.5, -2, 0.21],
  repeat: [-1, -6.5, -2.5, 7.5, -1, 0.26],
  botUa: [-4, -1, -3, 0.5, 6.5, 0.04],
};

/**
 * Fitted to synthetic attacks, visitors and clients, and then corrected by hand. In synthetic zones of another drawing, misfires
 * were called attacks because many addresses sent them, their JA4s were usual, they came from pages of the own site, or each
 * address triggered few rules. The rows `spread`, `usualJa4`, `referer` and `rulesPerIp` are now half-way between the fit and
 * what those zones asked for. With the full step, more attacks that have no idiom and come from usual networks are called a
 * misfire. Real zones differ again: `fitWeights` adapts the table to marks.
 */
export const SHIPPED_WEIGHTS: Weights = weights.parse({
  start: toPerClass(START),
  features: Object.fromEntries(VERDICT_FEATURES.map((feature) => [feature, toPerClass(TABLE[feature])])),
  means: Object.fromEntries(VERDICT_FEATURES.map((feature) => [feature, TABLE[feature].at(-1)])),
});

/** Returns what the softmax reads from the numbers, in the order of `VERDICT_FEATURES`. */
export function toInputs(features: Features, { means }: Weights): number[] {
  return VERDICT_FEATURES.map((feature) => (features[feature] ?? means[feature]) - 0.5);
}

/** Returns the odds of the classes, in the order of `VERDICT_CLASSES`, whose log odds are given up to a constant. */
export function softmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function toPerClass(row: readonly number[]): Record<string, number | undefined> {
  return Object.fromEntries(VERDICT_CLASSES.map((name, index) => [name, row[index]]));
}
