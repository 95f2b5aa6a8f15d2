import { z } from "zod";
import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictFeature } from "#model/kinds.ts";
import type { Features } from "#model/verdict.ts";

const perClass = z.record(z.enum(VERDICT_CLASSES), z.number().min(-50).max(50));

/**
 * Log odds of the classes. A number counts by its distance from its mean, so one that is not known counts nothing, and `start`
 * is what is said without any evidence.
 */
const weights = z.object({
  start: perClass,
  features: z.record(z.enum(VERDICT_FEATURES), perClass),
  means: z.record(z.enum(VERDICT_FEATURES), z.number().min(0).max(1)),
});
export type Weights = Readonly<z.output<typeof weights>>;

/** The scores before any evidence, in the order of `VERDICT_CLASSES`. */
const START = [2.25, 1.75, -0.75, -1.25, -1.5];
/** Weights in the same order, and the mean. */
const TABLE: Readonly<Record<VerdictFeature, readonly number[]>> = {
  spread: [1.5, 1.25, -2.5, -1.75, 1.75, 0.43],
  usualAsn: [-1.75, 0, 0.5, 0.75, 0.25, 0.54],
  usualJa4: [0, 0, 0, 0.5, 0.25, 0.51],
  oneJa4: [1.75, -1.75, 0, 0, 0.25, 0.49],
  dirty: [-1.25, -2, 3.75, 0, -0.25, 0.16],
  rulesPerIp: [1.5, -0.75, 1, -2, 0.5, 0.43],
  knownPath: [0.25, 0.25, 0, -0.75, -0.75, 0.55],
  onePath: [0.75, -0.25, -1.75, 1.5, -0.5, 0.8],
  session: [-1.75, 3, -0.5, 0.25, -1.25, 0.34],
  referer: [-0.5, 0.5, 0, -1, 0, 0.23],
  idiom: [2.75, -1.25, 0.25, 0.25, -1.75, 0.39],
  repeat: [-0.5, -2.75, 0.75, 3, -0.5, 0.12],
  botUa: [-1.75, -1.5, 1.25, -2, 4.5, 0.06],
  tool: [0, -0.25, 1.5, -3, 0, 0.11],
  program: [-2.25, -0.5, -1.25, 2.75, 1, 0.26],
};

/**
 * Fitted by a softmax regression with a ridge to the requests of half of the situations of `bench:message` and to the drawn zones of
 * `bench:verdict`, every situation with the same weight, some of them without records or history. A weight may not have the sign
 * that speaks against what everybody knows: a session never speaks for an attack, an idiom never for a misfire.
 */
export const SHIPPED_WEIGHTS: Weights = weights.parse({
  start: toPerClass(START),
  features: Object.fromEntries(VERDICT_FEATURES.map((feature) => [feature, toPerClass(TABLE[feature])])),
  means: Object.fromEntries(VERDICT_FEATURES.map((feature) => [feature, TABLE[feature].at(-1)])),
});

/** Returns what the softmax reads from the numbers, in the order of `VERDICT_FEATURES`. */
export function toInputs(features: Features, { means }: Weights): number[] {
  return VERDICT_FEATURES.map((feature) => (features[feature] ?? means[feature]) - means[feature]);
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
