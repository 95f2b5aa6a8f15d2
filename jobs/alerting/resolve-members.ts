import { type QuietResolve, resolveQuietly } from "../../db/alerting/alert-groups.ts";
import { readNewestAlerts } from "../../db/alerting/alerts.ts";
import type { Queryable } from "../../db/client.ts";
import { type PersonsAct, resolveByHand, toResolvedMessage } from "../../src/alerting/act-on-alert.ts";
import { toAlertRecord } from "../../src/alerting/to-alert-record.ts";
import type { AlertMessage } from "../../src/model/alert-message.ts";
import { Transitions, toldChannels } from "../../src/model/alert-record.ts";
import { fingerprintOf } from "../../src/model/fingerprint.ts";

/**
 * Closes with a group that a person has resolved the alerts of its rules that nobody has heard of: left open, each would
 * page by itself as soon as the group is silent. In the group's own transaction; one that has moved meanwhile stays as it is.
 */
export async function resolveMembers(
  tx: Queryable,
  members: NonNullable<AlertMessage["members"]>,
  act: PersonsAct,
): Promise<number> {
  const prints = members.map((member) => fingerprintOf({ kind: "spike", ...member }));
  const resolves = [...(await readNewestAlerts(tx, prints)).values()].flatMap((row): QuietResolve[] => {
    if (row.state === "resolved" || !Transitions.safeParse(row.transitions).success) return [];
    const before = toAlertRecord(row);
    if (toldChannels(before).size > 0) return [];
    const { alert } = resolveByHand(before, act);
    const { message } = row.details as { message?: unknown };
    if (message === undefined) return [];
    const { state, transition, reason, endedAt, headline } = toResolvedMessage(message, alert, act);
    const said = { state, transition, reason, endedAt, headline };
    return [{ id: row.id, seen: row.transition, entry: alert.transitions.at(-1), said }];
  });
  return resolves.length === 0 ? 0 : resolveQuietly(tx, resolves, act.atMs);
}
