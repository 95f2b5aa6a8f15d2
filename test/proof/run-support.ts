import pino from "pino";
import { onTestFinished } from "vitest";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import { createRunJobs, type ExecuteRun } from "#jobs/health/run-requested.ts";
import type { Clock } from "#lib/clock.ts";
import { createSecret } from "#lib/secret.ts";
import { createExecuteRun } from "#operations/execute-run.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { createPseudonymKey } from "#people/rules/pseudonym.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";

interface RunParts {
  readonly database: MigratedDatabase;
  readonly clock: Clock;
  readonly platform: { readonly url: string; readonly accessKey: string };
  readonly archive?: ArchiveStore;
}

/** The jobs of one process that execute what a person started: `run` runs the one that the id is for. */
export function openRuns({ database, clock, platform: { url, accessKey }, archive }: RunParts) {
  const transport = createEdgeTransport({ baseUrl: url, accessKey: createSecret(accessKey) });
  onTestFinished(() => transport.close());
  const key = createPseudonymKey(createSecret("the same for every process of a test"));
  const execute = createExecuteRun({
    database,
    clock,
    edge: createEdgeClient(transport),
    partitions: createPartitionKeeper(database),
    erasures: createErasureGuard(async () => key),
    observer: { pageStored: () => undefined },
    log: pino({ level: "silent" }),
    afterPage: () => undefined,
    knownSources: () => [],
    archive: archive ?? null,
  });
  const open = (executeRun: ExecuteRun) => {
    const jobs = createRunJobs({ database, clock, executeRun });
    return async (id: number, signal = new AbortController().signal) => {
      for (const job of jobs) await job.run({ id } as never, signal);
    };
  };
  return { run: open(execute), open };
}
