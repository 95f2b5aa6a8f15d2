import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createDice } from "../soak/dice.ts";

/** The longest files first, so that a long file never starts last, on any number of cores. */
const LONG = [
  "faults/lies",
  "browser/console",
  "faults/crash-points",
  "coverage/repair-window",
  "archive/conformance",
  "archive/export",
  "app/kill",
  "faults/completeness",
  "archive/files/killed",
  "app/outage",
  "privacy/key-lifetime",
  "faults/replicas",
  "archive/query/search",
  "faults/random-lies",
  "app/stop",
  "coverage/seal-windows",
  "coverage/reconcile-counts",
  "security/tls-redis",
  "faults/postgres",
  "delivery/deliver-storm",
  "ingest/list-tail",
  "faults/platform",
  "ingest/ingest-kill",
  "ingest/ingest",
  "embedded/postgres",
  "cli/backfill",
  "privacy/erase",
  "faults/model",
];

/** Sorts the long files first in this order, then all others in the order of the run's seed. */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return place === -1 ? LONG.length : place;
    };
    // Sorted by name first, because the order in which files are found must not affect a seed.
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
