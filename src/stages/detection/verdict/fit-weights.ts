import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictClass } from "#model/kinds.ts";
import type { Features } from "#model/verdict.ts";
import { softmax, toInputs, type Weights, weights } from "./weights.ts";

/** How strongly the prior table holds: a ridge towards it. */
const LAMBDA = 3;
const STEPS = 300;
const LIMIT = 50;

/** An alert that a person marked. */
export interface Marked {
  readonly features: Features;
  readonly mark: VerdictClass;
}

/**
 * Returns a table for marked alerts: a softmax regression with a ridge towards `prior`, which is returned without marks. A rare
 * class counts more, by the root of its rarity. The same marks in the same order give the same table. The means stay.
 */
export function fitWeights(marked: readonly Marked[], prior: Weights): Weights {
  const start = VERDICT_CLASSES.map((name) => [
    ...VERDICT_FEATURES.map((feature) => prior.features[feature][name]),
    prior.start[name],
  ]);
  const rarity = VERDICT_CLASSES.map((name) =>
    Math.sqrt(1 / marked.filter(({ mark }) => mark === name).length),
  );
  const total = marked.reduce((sum, { mark }) => sum + at(rarity, VERDICT_CLASSES.indexOf(mark)), 0);
  const samples = marked.map(({ features, mark }) => {
    const index = VERDICT_CLASSES.indexOf(mark);
    const weight = (at(rarity, index) * marked.length) / total;
    return { inputs: [...toInputs(features, prior), 1], mark: index, weight };
  });

  // Nesterov's gradient descent for a loss whose curvature lies between LAMBDA and `steepest`.
  const steepest = samples.reduce(
    (sum, { inputs, weight }) => sum + (weight / 2) * inputs.reduce((all, x) => all + x * x, 0),
    LAMBDA,
  );
  const momentum = (Math.sqrt(steepest) - Math.sqrt(LAMBDA)) / (Math.sqrt(steepest) + Math.sqrt(LAMBDA));
  let [table, ahead] = [start, start];
  for (let step = 0; step < STEPS; step += 1) {
    const slope = ahead.map((row, c) => row.map((weight, f) => LAMBDA * (weight - at(start[c], f))));
    for (const { inputs, mark, weight } of samples) {
      const odds = softmax(ahead.map((row) => multiply(row, inputs)));
      for (const [c, row] of slope.entries()) {
        const error = weight * (at(odds, c) - (c === mark ? 1 : 0));
        for (let f = 0; f < row.length; f += 1) row[f] = at(row, f) + error * at(inputs, f);
      }
    }
    const next = ahead.map((row, c) => row.map((weight, f) => weight - at(slope[c], f) / steepest));
    ahead = next.map((row, c) => row.map((weight, f) => weight + momentum * (weight - at(table[c], f))));
    table = next;
  }
  const columnOf = (f: number) =>
    Object.fromEntries(
      VERDICT_CLASSES.map((name, c) => [name, Math.min(Math.max(at(table[c], f), -LIMIT), LIMIT)]),
    );
  return weights.parse({
    start: columnOf(VERDICT_FEATURES.length),
    features: Object.fromEntries(VERDICT_FEATURES.map((feature, f) => [feature, columnOf(f)])),
    means: prior.means,
  });
}

function multiply(row: readonly number[], inputs: readonly number[]): number {
  let sum = 0;
  for (let f = 0; f < row.length; f += 1) sum += at(row, f) * at(inputs, f);
  return sum;
}

function at(numbers: readonly number[] | undefined, index: number): number {
  return numbers?.[index] ?? 0;
}
