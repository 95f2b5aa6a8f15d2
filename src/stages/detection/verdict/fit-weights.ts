import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictClass } from "#model/kinds.ts";
import type { Features } from "#model/verdict.ts";
import { softmax, toInputs, type Weights, weights } from "./weights.ts";

/** How strongly the prior table holds: a ridge towards it. */
const LAMBDA = 3;
/** The curvature of a softmax is at most half the squared length of its inputs. */
const CURVATURE = 0.5;
const STEPS = 400;
const LIMIT = 50;

/**
 * Returns a table for marked alerts: a softmax regression with a ridge towards `prior`, which is returned without marks. A rare
 * class counts more, by the root of its rarity. The same marks in the same order give the same table. The means stay.
 */
export function fitWeights(
  marked: readonly { readonly features: Features; readonly mark: VerdictClass }[],
  prior: Weights,
): Weights {
  const start = VERDICT_CLASSES.map((name) => [
    ...VERDICT_FEATURES.map((feature) => prior.features[feature][name]),
    prior.start[name],
  ]);
  const rarity = VERDICT_CLASSES.map((name) => {
    const { length } = marked.filter(({ mark }) => mark === name);
    return length === 0 ? 0 : Math.sqrt(marked.length / length);
  });
  const samples = marked.map(({ features, mark }) => ({
    inputs: [...toInputs(features, prior), 1],
    mark: VERDICT_CLASSES.indexOf(mark),
  }));
  const meanRarity = samples.reduce((sum, { mark }) => sum + (rarity[mark] ?? 0), 0) / samples.length;
  const weightOf = (mark: number) => (rarity[mark] ?? 0) / meanRarity;

  // Nesterov's gradient descent for a loss whose curvature lies between LAMBDA and `steepest`.
  const steepest = samples.reduce(
    (sum, { inputs, mark }) => sum + CURVATURE * weightOf(mark) * inputs.reduce((all, x) => all + x * x, 0),
    LAMBDA,
  );
  const momentum = (Math.sqrt(steepest) - Math.sqrt(LAMBDA)) / (Math.sqrt(steepest) + Math.sqrt(LAMBDA));
  let [table, ahead] = [start, start];
  for (let step = 0; step < STEPS; step += 1) {
    const slope = ahead.map((row, c) => row.map((weight, f) => LAMBDA * (weight - at(start, c, f))));
    for (const { inputs, mark } of samples) {
      const odds = softmax(
        ahead.map((row) => row.reduce((sum, weight, f) => sum + weight * (inputs[f] ?? 0), 0)),
      );
      for (const [c, row] of slope.entries()) {
        const error = weightOf(mark) * ((odds[c] ?? 0) - (c === mark ? 1 : 0));
        for (const [f, x] of inputs.entries()) row[f] = (row[f] ?? 0) + error * x;
      }
    }
    const next = ahead.map((row, c) => row.map((weight, f) => weight - at(slope, c, f) / steepest));
    ahead = next.map((row, c) => row.map((weight, f) => weight + momentum * (weight - at(table, c, f))));
    table = next;
  }
  const columnOf = (f: number) =>
    Object.fromEntries(
      VERDICT_CLASSES.map((name, c) => [name, Math.min(Math.max(at(table, c, f), -LIMIT), LIMIT)]),
    );
  return weights.parse({
    start: columnOf(VERDICT_FEATURES.length),
    features: Object.fromEntries(VERDICT_FEATURES.map((feature, f) => [feature, columnOf(f)])),
    means: prior.means,
  });
}

function at(table: readonly (readonly number[])[], row: number, column: number): number {
  return table[row]?.[column] ?? 0;
}
