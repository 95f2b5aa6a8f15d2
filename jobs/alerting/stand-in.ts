import { z } from "zod";
import type { Database } from "../../db/client.ts";
import { insertStandIns, readOverdue } from "../../db/delivery/fallback.ts";
import type { Log } from "../../src/lib/log.ts";
import { notificationKeyOf } from "../../src/model/dedupe-key.ts";

/** The channel that is told what another has not taken for so long. */
export interface Fallback {
  readonly channel: string;
  readonly afterMs: number;
}

const MOST = 1_000;
const keyed = z.object({ dedupeKey: z.string() });

/** Hands overdue messages to the fallback channel, as copies with keys of their own; the originals stay due. */
export async function standIn(
  { database, log }: { readonly database: Database; readonly log: Log },
  { channel: fallback, afterMs }: Fallback,
): Promise<void> {
  const overdue = await readOverdue(database.db, { fallback, afterMs, limit: MOST });
  const copies = overdue.map(({ channel: standsInFor, ...row }) => {
    const { data } = keyed.safeParse(row.content);
    const dedupeKey = notificationKeyOf(data?.dedupeKey ?? `alert-${row.alertId}`, row.transition, fallback);
    // There is no earlier message of this alert that it could change without a sound.
    const { isQuiet: _, ...content } = row.content as { isQuiet?: boolean };
    return { ...row, content, channel: fallback, standsInFor, dedupeKey };
  });
  const copied = await insertStandIns(database.db, copies);
  if (copied > 0) log.warn({ channel: fallback, copied }, "fallback channel stands in");
}
