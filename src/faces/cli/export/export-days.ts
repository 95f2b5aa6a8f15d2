import { rm } from "node:fs/promises";
import { createFolderStorage } from "#adapters/storage/folder-storage.ts";
import { createArchiveStore } from "#app/open-archive-store.ts";
import type { Config } from "#config/config.ts";
import { writeAuditEntry } from "#db/keys/audit-trail.ts";
import { temporaryFolder } from "#jobs/archive/work-folder.ts";
import { copyOpenDay } from "#jobs/archive/write-day.ts";
import { formatBytes } from "#lib/disk.ts";
import { formatWhole, many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { copyDays } from "#operations/archive/copy-days.ts";
import { describeExport } from "#operations/search/describe-export.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { withArchive } from "../archive/with-archive.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { requireZones } from "../options/require-known.ts";
import type { StoreIo } from "../store/store-command.ts";

/** Notes what keeps files from being copied: a span that cuts days, and filters. */
export function checkWholeDays(
  read: FlagReader,
  { from, to, clauses, methodClauses }: SearchPlan,
  given: { readonly from?: string; readonly to?: string },
): void {
  const rule =
    "the start of a UTC day, because whole files are copied; for other spans write .csv or .ndjson";
  if (from % DAY_MS !== 0) read.wrong("from", given.from, rule);
  if (to % DAY_MS !== 0) read.wrong("to", given.to ?? "now", rule);
  if (clauses.length + methodClauses.length > 0)
    read.wrong("format", "parquet", "csv or ndjson beside filters, because whole files are copied");
}

export interface DaysToExport {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  /** A new folder, absolute. */
  readonly target: string;
  readonly actor: string;
}

/** Copies the archive's files of whole days into a new folder, and days that are not in the archive yet from Postgres. */
export async function exportDays(
  io: StoreIo,
  config: Config,
  { zoneId, plan, target, actor }: DaysToExport,
): Promise<void> {
  const copied = await withArchive(
    io,
    config,
    async ({ database, archive: { storage }, onProgress, signal }) => {
      const { db } = database;
      await requireZones(db, config, [zoneId]);
      await writeAuditEntry(db, describeExport(actor, zoneId, { plan, isMasked: false }));
      return copyDays({ db, storage }, zoneId, plan, {
        target,
        signal,
        async writeOpen(day, folder) {
          const store = createArchiveStore(createFolderStorage(folder));
          try {
            onProgress(0, `${day} from the database`);
            return await copyOpenDay({ ...store, database, signal }, { zoneId, day }, io.clock());
          } finally {
            await store.duckdb.close();
            await rm(temporaryFolder(folder), { recursive: true, force: true });
          }
        },
        onFile: (done, all) =>
          onProgress(
            done.bytes / all.bytes,
            `${formatWhole(done.events)} of ${many(all.events, "event")}, ${formatWhole(done.files)} of ${many(all.files, "file")}`,
          ),
      });
    },
  );
  const { days, files, events, bytes, provisional } = copied;
  // Now the progress line is gone.
  io.stderr.write(
    `wrote ${escapeText(target)}: ${many(days, "day")}, ${many(events, "event")}, ${many(files, "file")}, ${formatBytes(bytes)}\n`,
  );
  for (const sentence of provisional) io.stderr.write(`${sentence}.\n`);
}
