import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createDice } from "../soak/dice.ts";

/** Longest first: what starts last should not be what takes longest, on however many cores. */
const LONG = [
  "app/kill",
  "faults/lies",
  "faults/replicas",
  "faults/crash-points",
  "coverage/repair-window",
  "faults/completeness",
  "delivery/message/group-members",
  "app/outage",
  "ingest/ingest",
  "archive/conformance",
  "faults/platform",
  "faults/postgres",
  "ingest/ingest-kill",
  "coverage/seal-windows",
  "coverage/reconcile-counts",
  "faults/random-lies",
  "cli/backfill",
  "app/stop",
  "faults/model",
  "archive/export",
  "delivery/deliver-storm",
  "archive/query/search",
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
