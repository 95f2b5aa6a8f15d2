import { listNamed } from "#db/archive/archive-files.ts";
import type { Database } from "#db/client.ts";
import { claimStorage } from "#jobs/archive/claim-storage.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";

export interface BucketParts {
  readonly database: Database;
  readonly storage: ArchiveStorage;
  readonly log: Log;
}

/**
 * Logs at the start why the bucket cannot be used. The service then runs without it, and archive days wait in Postgres.
 * Every hour removes from this process's cache the files that another replica has erased or that have expired.
 */
export function openBucket({ database, storage, log }: BucketParts, stack: StopStack): void {
  if (!storage.isBucket) return;
  claimStorage(database.db, storage).catch((err: unknown) =>
    log.error({ err, effect: "days stay in Postgres" }, "archive bucket not usable"),
  );
  const clean = () =>
    storage
      .forget((paths) => listNamed(database.db, paths))
      .catch((err: unknown) => log.warn({ err }, "archive cache not cleaned"));
  const timer = setInterval(() => void clean(), HOUR_MS);
  stack.defer("archive cache", async () => clearInterval(timer));
  void clean();
}
