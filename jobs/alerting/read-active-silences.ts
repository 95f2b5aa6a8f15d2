import { readSilences } from "../../db/alerting/alerts.ts";
import type { Queryable } from "../../db/client.ts";
import { Matchers, type Silence } from "../../src/alerting/silence.ts";
import type { Log } from "../../src/lib/log.ts";

/**
 * Returns the silences in force. A silence that cannot be read is ignored: an unwanted notification is better than a
 * missing one.
 */
export async function readActiveSilences(
  db: Queryable,
  log: Pick<Log, "warn">,
  nowMs: number,
): Promise<readonly Silence[]> {
  const rows = await readSilences(db, nowMs);
  return rows.flatMap(({ id, startsAt, expiresAt, matchers }) => {
    const { data } = Matchers.safeParse(matchers);
    if (data === undefined) {
      log.warn({ silenceId: id }, "unreadable silence ignored");
      return [];
    }
    return [{ id, startsAtMs: startsAt.getTime(), expiresAtMs: expiresAt.getTime(), matchers: data }];
  });
}
