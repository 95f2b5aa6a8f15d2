import { z } from "zod";
import type { Database } from "#db/client.ts";
import { insertFallbackCopies, readOverdue } from "#db/delivery/delivery-outcomes.ts";
import type { Log } from "#lib/log.ts";
import { notificationKeyOf } from "#model/fingerprint.ts";

/** The channel that is notified when another one has not accepted a message for `afterMs`. */
export interface Fallback {
  readonly channel: string;
  readonly afterMs: number;
}

const MOST = 1_000;
const keyed = z.object({ dedupeKey: z.string() });

/** Copies overdue messages to the fallback channel, with keys of their own. The originals stay due. */
export async function copyToFallback(
  { database, log }: { readonly database: Database; readonly log: Log },
  { channel: fallback, afterMs }: Fallback,
): Promise<void> {
  const overdue = await readOverdue(database.db, { fallback, afterMs, limit: MOST });
  const copies = overdue.map(({ channel: standsInFor, ...row }) => {
    const { data } = keyed.safeParse(row.content);
    const dedupeKey = notificationKeyOf(data?.dedupeKey ?? `alert-${row.alertId}`, row.transition, fallback);
    // The fallback channel has no earlier message of this alert that it could update in place.
    const { isQuiet: _, ...content } = row.content as { isQuiet?: boolean };
    return { ...row, content, channel: fallback, standsInFor, dedupeKey };
  });
  const copied = await insertFallbackCopies(database.db, copies);
  if (copied > 0) log.warn({ channel: fallback, copied }, "messages copied to fallback channel");
}
