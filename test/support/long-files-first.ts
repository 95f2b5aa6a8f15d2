import { existsSync } from "node:fs";
import path from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import durations from "../durations.json" with { type: "json" };
import { createDice } from "../soak/dice.ts";

const TESTS = path.join(import.meta.dirname, "..");

/** Seconds that each file took when `npm run durations` noted them. Files that are left out took less than one. */
const SECONDS = new Map(Object.entries(durations));

/** Tests are moved and renamed, and a long file whose name is unknown here would start last. */
const lost = [...SECONDS.keys()].filter((name) => !existsSync(path.join(TESTS, `${name}.test.ts`)));
if (lost.length > 0)
  process.stderr.write(`test/durations.json names files that do not exist: ${lost.join(", ")}\n`);

/** Sorts the longest files first, so that a long file never starts last, and those of one second in the order of the run's seed. */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = ({ moduleId }: TestSpecification) =>
      SECONDS.get(path.relative(TESTS, moduleId).replace(/\.test\.ts$/, "")) ?? 0;
    // Sorted by name first, because the order in which files are found must not affect a seed.
    const known = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
    return shuffle(known, this.ctx.config.sequence.seed).toSorted((a, b) => secondsOf(b) - secondsOf(a));
  }
}

function shuffle<T>(items: readonly T[], seed: number): T[] {
  const dice = createDice(seed);
  return items
    .map((item) => ({ item, at: dice.roll(0, 2 ** 31) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
