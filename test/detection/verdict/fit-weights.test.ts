import { describe, expect, test } from "vitest";
import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictClass } from "#model/kinds.ts";
import type { Features, StoredVerdict } from "#model/verdict.ts";
import { changesAction } from "#stages/detection/verdict/changes-action.ts";
import { computeFeatures } from "#stages/detection/verdict/compute-features.ts";
import { fitWeights } from "#stages/detection/verdict/fit-weights.ts";
import { judgeVerdict } from "#stages/detection/verdict/judge-verdict.ts";
import { SHIPPED_WEIGHTS, weights } from "#stages/detection/verdict/weights.ts";
import { ATTACK, evidenceOf, featuresOf, type Told } from "./evidence-of.ts";

const markedAs = (mark: VerdictClass, features: Features, number: number) =>
  Array.from({ length: number }, () => ({ mark, features }));

describe("a fit", () => {
  /** Visitors of a zone whose records have no cookie of theirs. */
  const told: Told = { request: () => ({ hasSession: false }) };
  const { features } = computeFeatures(evidenceOf(told));
  const oddsOf = (table = SHIPPED_WEIGHTS) => judgeVerdict(evidenceOf(told), table).classes;

  test("without marks is the prior", () => {
    expect(fitWeights([], SHIPPED_WEIGHTS)).toEqual(SHIPPED_WEIGHTS);
  });

  test("moves towards its marks, and farther with more of them", () => {
    const odds = [0, 2, 10, 50].map(
      (number) => oddsOf(fitWeights(markedAs("misfire", features, number), SHIPPED_WEIGHTS)).misfire,
    );
    expect(odds).toEqual(odds.toSorted((a, b) => a - b));
    expect(new Set(odds).size).toBe(4);
    expect(odds.at(-1)).toBeGreaterThan(0.8);
  });

  test("leaves what no mark is about nearly as it was", () => {
    const before = judgeVerdict(evidenceOf(ATTACK), SHIPPED_WEIGHTS);
    const table = fitWeights(markedAs("misfire", features, 5), SHIPPED_WEIGHTS);
    expect(judgeVerdict(evidenceOf(ATTACK), table).said).toBe(before.said);
    expect(table.means).toEqual(SHIPPED_WEIGHTS.means);
  });

  test("gives the same valid table for the same marks", () => {
    const marks = [
      ...markedAs("misfire", features, 9),
      ...markedAs("crawler", featuresOf(null), 1),
      ...markedAs("scanner", featuresOf(1, { idiom: 0 }), 3),
    ];
    const table = fitWeights(marks, SHIPPED_WEIGHTS);
    expect(fitWeights(marks, SHIPPED_WEIGHTS)).toEqual(table);
    expect(weights.parse(JSON.parse(JSON.stringify(table)))).toEqual(table);
  });

  test("keeps each number's sum over the classes with hundreds of marks, and stays near the prior", () => {
    const marks = [...markedAs("misfire", features, 300), ...markedAs("attack", featuresOf(0.9), 30)];
    const table = fitWeights(marks, SHIPPED_WEIGHTS);
    const sumOf = (row: Record<VerdictClass, number>) =>
      Object.values(row).reduce((sum, weight) => sum + weight, 0);
    expect(table.features.session.misfire).not.toBeCloseTo(SHIPPED_WEIGHTS.features.session.misfire, 3);
    for (const feature of VERDICT_FEATURES) {
      const [row, before] = [table.features[feature], SHIPPED_WEIGHTS.features[feature]];
      expect(sumOf(row)).toBeCloseTo(sumOf(before), 6);
      for (const name of VERDICT_CLASSES) expect(Math.abs(row[name] - before[name])).toBeLessThan(5);
    }
  });
});

test("a table with a missing class or a number that is none is refused", () => {
  const { attack: _, ...start } = SHIPPED_WEIGHTS.start;
  expect(weights.safeParse({ ...SHIPPED_WEIGHTS, start }).success).toBe(false);
  expect(
    weights.safeParse({ ...SHIPPED_WEIGHTS, start: { ...SHIPPED_WEIGHTS.start, attack: Number.NaN } })
      .success,
  ).toBe(false);
});

describe("an action changes", () => {
  const verdict = judgeVerdict(evidenceOf(), SHIPPED_WEIGHTS);
  const attack = judgeVerdict(evidenceOf(ATTACK), SHIPPED_WEIGHTS);
  const unclear = { ...verdict, said: "unclear" } as const;

  test.each<[string, StoredVerdict | null, StoredVerdict, boolean]>([
    ["with the first verdict", null, verdict, true],
    ["with another one", verdict, attack, true],
    ["when an unclear one becomes one", unclear, verdict, true],
    ["when one becomes unclear", verdict, unclear, true],
    ["when a misfire lasts", verdict, { ...verdict, isLasting: true }, true],
    ["not when it goes on lasting", { ...verdict, isLasting: true }, { ...verdict, isLasting: true }, false],
    ["not when something unclear lasts", unclear, { ...unclear, isLasting: true }, false],
    ["when an attack becomes all but certain", { ...attack, odds: 0.89 }, { ...attack, odds: 0.9 }, true],
    ["not when an attack stays so", { ...attack, odds: 0.9 }, { ...attack, odds: 0.95 }, false],
    ["not when an attack becomes less certain", { ...attack, odds: 0.95 }, { ...attack, odds: 0.6 }, false],
    ["not when only odds move", { ...verdict, odds: 0.8 }, { ...verdict, odds: 0.95 }, false],
  ])("%s", (_, before, now, changes) => {
    expect(changesAction(before, now)).toBe(changes);
  });
});
