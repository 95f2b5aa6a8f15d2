import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createDice } from "../soak/dice.ts";

/** The longest files first, so that a long file never starts last, on any number of cores. */
const LONG = [
  "faults/lies",
  "browser/console",
  "app/pipeline",
  "faults/crash-points",
  "faults/completeness",
  "coverage/repair-window",
  "app/kill",
  "archive/conformance",
  "faults/replicas",
  "archive/export",
  "app/outage",
  "archive/files/killed",
  "ingest/ingest",
  "coverage/reconcile-counts",
  "faults/platform",
  "faults/random-lies",
  "app/stop",
  "detection/replay-events",
  "faults/postgres",
  "privacy/key-lifetime",
  "coverage/seal-windows",
  "ingest/ingest-kill",
  "security/tls-redis",
  "detection/replay-spikes",
  "cli/backfill",
  "emulator/past",
  "archive/query/search",
  "privacy/erase",
  "coverage/empty-answers",
  "ingest/list-tail",
  "delivery/deliver-storm",
  "faults/model",
  "embedded/postgres",
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
