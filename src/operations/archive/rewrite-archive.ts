import { listValidFiles } from "#db/archive/archive-files.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import { type AddFactsDeps, addFacts } from "#jobs/archive/add-facts.ts";
import { toError } from "#lib/errors.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";

export interface RewriteScope {
  /** Null: every zone. */
  readonly zoneId: number | null;
  /** `yyyy-mm-dd`: only this day, also if its files are of the current version. Null: every day of an earlier version. */
  readonly day: string | null;
  /** Called before each day with the number of days before it and of all days. */
  readonly onDay: (day: ZoneDay, done: number, all: number) => void;
  /** Called for each day that stays as it is. */
  readonly onFailure: (day: ZoneDay, failure: Error) => void;
}

export interface RewrittenArchive {
  readonly days: number;
  readonly events: number;
  /** Events with a record. The facts of others are known only as far as their columns say. */
  readonly records: number;
  readonly failed: number;
}

/**
 * Writes the archive days of earlier versions anew, oldest first, one after the other. Each day is complete before the next one
 * begins, so a run that was stopped goes on with the days that are left. A day that fails does not keep the others waiting.
 */
export async function rewriteArchive(
  deps: AddFactsDeps & { readonly signal: AbortSignal },
  { zoneId, day, onDay, onFailure }: RewriteScope,
): Promise<RewrittenArchive> {
  const scope = { zoneId, kind: "events" as const, ...(day === null ? {} : { day }) };
  const files = await listValidFiles(deps.database.db, scope);
  const due = files.filter(({ format }) => day !== null || format < ARCHIVE_FORMAT);
  if (day !== null && due.length === 0)
    throw new Error(
      `${day} is not an archive day${zoneId === null ? "" : ` of zone ${zoneId}`}; see longwatch archive status`,
    );
  const rewritten = { days: 0, events: 0, records: 0, failed: 0 };
  for (const [index, file] of due.entries()) {
    deps.signal.throwIfAborted();
    const zoneDay = { zoneId: file.zoneId, day: file.day };
    onDay(zoneDay, index, due.length);
    try {
      const added = await addFacts(deps, zoneDay, { isForced: day !== null });
      if (added === null) continue;
      rewritten.days += 1;
      rewritten.events += added.events;
      rewritten.records += added.records;
    } catch (thrown) {
      deps.signal.throwIfAborted();
      rewritten.failed += 1;
      onFailure(zoneDay, toError(thrown));
    }
  }
  return rewritten;
}
