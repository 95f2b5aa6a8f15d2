import { readSilences } from "#db/alerting/silences.ts";
import type { Queryable } from "#db/client.ts";
import type { Log } from "#lib/log.ts";
import { type SignedSilence, toSilences } from "#stages/alerting/silence.ts";

/**
 * Returns the silences in force. A silence that cannot be read is ignored: an unwanted notification is better than a
 * missing one.
 */
export async function readActiveSilences(
  db: Queryable,
  log: Pick<Log, "warn">,
  nowMs: number,
): Promise<readonly SignedSilence[]> {
  const rows = await readSilences(db, { fromMs: nowMs, toMs: nowMs });
  const silences = toSilences(rows);
  const readable = new Set(silences.map(({ id }) => id));
  for (const { id } of rows) if (!readable.has(id)) log.warn({ silenceId: id }, "unreadable silence ignored");
  return silences;
}
