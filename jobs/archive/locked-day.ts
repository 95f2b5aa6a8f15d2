import { listValidFiles, type ManifestRow } from "#db/archive/archive-files.ts";
import { lockArchiveDay, type ZoneDay } from "#db/archive/day-source.ts";
import type { Database, Queryable } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { ArchiveStore } from "./archive-store.ts";
import { inWorkFolder } from "./work-folder.ts";

/** An archive day that no other process changes until the transaction ends. */
export interface LockedDay {
  readonly tx: Queryable;
  /** A folder for new files. */
  readonly work: string;
  /** The valid files of the day. A bucket's cache keeps them. */
  readonly files: readonly ManifestRow[];
}

/** Runs `rewrite` in a transaction that keeps an archive day from changing. */
export function inLockedDay<T>(
  { database, archive }: { readonly database: Database; readonly archive: ArchiveStore },
  { zoneId, day }: ZoneDay,
  rewrite: (locked: LockedDay) => Promise<T>,
): Promise<T> {
  return inTransaction(database, ({ tx }) =>
    inWorkFolder(archive.storage, { zoneId, day }, async (work) => {
      await tx.execute("set local idle_in_transaction_session_timeout = 0");
      await lockArchiveDay(tx, day);
      const files = await listValidFiles(tx, { zoneId, day });
      const release = archive.storage.hold(files);
      try {
        return await rewrite({ tx, work, files });
      } finally {
        release();
      }
    }),
  );
}
