import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictClass } from "#model/kinds.ts";
import type { Features } from "#model/verdict.ts";
import { softmax, toInputs, type Weights, weights } from "./weights.ts";

/** How strongly the prior table holds: a ridge towards it. */
const LAMBDA = 3;
/** The curvature of a softmax is at most half the squared length of its inputs. */
const CURVATURE = 0.5;
const STEPS = 300;
const LIMIT = 50;

/**
 * Returns a table for marked alerts: a softmax regression with a ridge towards `prior`, which is returned without marks. A rare
 * class counts more, by the root of its rarity. The same marks in the same order give the same table. The means stay.
 */
export function fitWeights(
  marked: readonly { readonly features: Features; readonly mark: VerdictClass }[],
  prior: Weights,
): Weights {
  const [classes, size] = [VERDICT_CLASSES.length, VERDICT_FEATURES.length + 1];
  const start = VERDICT_CLASSES.flatMap((name) => [
    ...VERDICT_FEATURES.map((feature) => prior.features[feature][name]),
    prior.start[name],
  ]);
  const rarity = VERDICT_CLASSES.map((name) =>
    Math.sqrt(1 / marked.filter(({ mark }) => mark === name).length),
  );
  const total = marked.reduce((sum, { mark }) => sum + at(rarity, VERDICT_CLASSES.indexOf(mark)), 0);
  const samples = marked.map(({ features, mark }) => {
    const index = VERDICT_CLASSES.indexOf(mark);
    return {
      inputs: [...toInputs(features, prior), 1],
      mark: index,
      weight: (at(rarity, index) * marked.length) / total,
    };
  });

  // Nesterov's gradient descent for a loss whose curvature lies between LAMBDA and `steepest`.
  const steepest = samples.reduce(
    (sum, { inputs, weight }) => sum + CURVATURE * weight * inputs.reduce((all, x) => all + x * x, 0),
    LAMBDA,
  );
  const momentum = (Math.sqrt(steepest) - Math.sqrt(LAMBDA)) / (Math.sqrt(steepest) + Math.sqrt(LAMBDA));
  let [table, ahead] = [start, start];
  for (let step = 0; step < STEPS; step += 1) {
    const slope = ahead.map((weight, index) => LAMBDA * (weight - at(start, index)));
    for (const { inputs, mark, weight } of samples) {
      const logits: number[] = [];
      for (let c = 0; c < classes; c += 1) {
        let logit = 0;
        for (let f = 0; f < size; f += 1) logit += at(ahead, c * size + f) * at(inputs, f);
        logits.push(logit);
      }
      for (const [c, odds] of softmax(logits).entries()) {
        const error = weight * (odds - (c === mark ? 1 : 0));
        for (let f = 0; f < size; f += 1)
          slope[c * size + f] = at(slope, c * size + f) + error * at(inputs, f);
      }
    }
    const next = ahead.map((weight, index) => weight - at(slope, index) / steepest);
    ahead = next.map((weight, index) => weight + momentum * (weight - at(table, index)));
    table = next;
  }
  const columnOf = (f: number) =>
    Object.fromEntries(
      VERDICT_CLASSES.map((name, c) => [name, Math.min(Math.max(at(table, c * size + f), -LIMIT), LIMIT)]),
    );
  return weights.parse({
    start: columnOf(VERDICT_FEATURES.length),
    features: Object.fromEntries(VERDICT_FEATURES.map((feature, f) => [feature, columnOf(f)])),
    means: prior.means,
  });
}

function at(numbers: readonly number[], index: number): number {
  return numbers[index] ?? 0;
}
