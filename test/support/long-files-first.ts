import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createDice } from "../soak/dice.ts";

/** The longest files first, so that a long file never starts last, on any number of cores. */
const LONG = [
  "faults/honest-mistakes",
  "faults/lies",
  "coverage/repair-window",
  "browser/console",
  "faults/completeness",
  "archive/query/fields",
  "coverage/seal-windows",
  "delivery/deliver-outage",
  "archive/conformance",
  "archive/list",
  "faults/postgres",
  "coverage/reconcile-counts",
  "cli/verify",
  "cli/backfill",
  "ingest/ingest-kill",
  "archive/damaged-files",
  "detection/replay-spikes",
  "coverage/withdraw-events",
  "archive/fuzz",
  "faults/replicas",
  "archive/query/hostile-texts",
  "delivery/flood",
  "privacy/missing-key",
  "app/pipeline",
  "archive/export",
  "delivery/message/links",
  "faults/crash-points",
  "archive/query/search",
  "privacy/erase",
  "emulator/past",
  "http/first-key",
  "ingest/ingest-failures",
  "detection/detect-sources",
  "archive/advice",
  "cli/search",
  "faults/lying-platform",
  "coverage/empty-answers",
  "backup/kill",
  "coverage/coverage-alerts",
  "faults/platform",
  "alerting/service-alerts",
  "cli/alerts",
  "security/tls-postgres",
  "ingest/list-tail",
  "ingest/ingest",
  "alerting/raise-routed",
  "faults/random-lies",
  "queue/outage",
  "cli/status",
  "archive/files/killed",
  "archive/export-parquet",
  "http/api/fuzz",
  "app/outage",
  "faults/stores",
  "app/kill",
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
