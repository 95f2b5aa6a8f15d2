import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createDice } from "../soak/dice.ts";

/** Longest first: what starts last should not be what takes longest, on however many cores. */
const LONG = [
  "faults/crash-points",
  "app/kill",
  "faults/replicas",
  "faults/completeness",
  "faults/platform",
  "faults/postgres",
  "search/search",
  "faults/model",
  "jobs/ingest-kill",
  "emulator/command",
  "cli/backfill",
  "jobs/repair-window",
  "edge/request-gate-postgres",
  "jobs/deliver-storm",
  "jobs/ingest",
  "embedded/postgres",
];

/** The long files in their order, then all others in the order that the run's seed gives. */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return place === -1 ? LONG.length : place;
    };
    // By name first: the order in which files are found must not matter to a seed.
    const known = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
    return shuffle(known, this.ctx.config.sequence.seed).toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}

function shuffle<T>(items: readonly T[], seed: number): T[] {
  const dice = createDice(seed);
  return items
    .map((item) => ({ item, at: dice.roll(0, 2 ** 31) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
