import { BaseSequencer, type TestSpecification } from "vitest/node";
import { createDice } from "../soak/dice.ts";

/** The longest files first, so that a long file never starts last, on any number of cores. */
const LONG = [
  "browser/console",
  "faults/lies",
  "app/pipeline",
  "faults/honest-mistakes",
  "faults/crash-points",
  "cli/search",
  "archive/export",
  "faults/completeness",
  "archive/conformance",
  "faults/platform",
  "coverage/repair-window",
  "faults/replicas",
  "queue/outage",
  "coverage/seal-windows",
  "emulator/past",
  "privacy/key-lifetime",
  "ingest/ingest-kill",
  "coverage/empty-answers",
  "archive/query/search",
  "app/outage",
  "ingest/ingest",
  "coverage/reconcile-counts",
  "ingest/list-tail",
  "archive/sql/statements",
  "privacy/erase",
  "security/tls-postgres",
  "archive/fuzz",
  "coverage/withdraw-events",
  "faults/model",
  "faults/postgres",
  "detection/detect-sources",
  "archive/advice",
  "archive/files/killed",
  "archive/query/fields",
  "http/first-key",
  "detection/judge-late",
  "app/kill",
  "archive/query/hostile-texts",
  "faults/lying-platform",
  "cli/alerts",
  "security/tls-redis",
  "coverage/coverage-alerts",
  "cli/backfill",
  "faults/random-lies",
  "delivery/deliver-storm",
  "delivery/deliver-outage",
  "ingest/ingest-failures",
  "detection/replay-events",
  "cli/tail",
  "embedded/postgres",
  "archive/list",
  "archive/damaged-files",
  "mcp/mcp",
  "detection/replay-spikes",
  "app/stop",
  "alerting/service-alerts",
  "emulator/search",
  "app/refused-zone",
  "delivery/message/links",
  "queue/job-queue",
  "delivery/flood",
  "emulator/command",
  "archive/files/bucket-days",
  "detection/roll-up-trends",
  "backup/kill",
  "queue/worker-death",
  "queue/idle",
  "archive/files/clean-archive",
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
