import { type QuietResolve, resolveQuietly } from "../../db/alerting/alert-groups.ts";
import type { AlertRow } from "../../db/alerting/alerts.ts";
import type { Queryable } from "../../db/client.ts";
import type { AlertSpike } from "../../src/alerting/alert-spike.ts";
import { assessAlert, type Scene } from "../../src/alerting/assess-alert.ts";
import { headlineOf } from "../../src/alerting/message/headline.ts";
import { nextAlert } from "../../src/alerting/next-alert.ts";
import { toAlertRecord } from "../../src/alerting/to-alert-record.ts";
import { Transitions, toldChannels } from "../../src/model/alert-record.ts";
import { fingerprintOf } from "../../src/model/fingerprint.ts";

/**
 * Closes, in a few statements, the alerts that are over and that no channel has heard of: after a flood there are
 * thousands. How many.
 */
export function resolveUntold(
  db: Queryable,
  spikes: readonly AlertSpike[],
  alerts: ReadonlyMap<string, AlertRow>,
  scene: Scene,
): Promise<number> {
  const resolves = spikes.flatMap((spike): QuietResolve[] => {
    const row = alerts.get(fingerprintOf(spike));
    if (row === undefined || row.state === "resolved" || row.spikeId !== spike.id) return [];
    if (!Transitions.safeParse(row.transitions).success) return [];
    const before = toAlertRecord(row);
    if (spike.closedAtMs === null || toldChannels(before).size > 0) return [];
    const { reason } = assessAlert(spike, before, scene, () => false);
    if (reason !== "resolved") return [];
    const { nowMs } = scene;
    const facts = { reason, spike, channels: [], silencedBy: null, hasAdvice: false, nowMs };
    const after = nextAlert(before, facts);
    const { state, transition } = after;
    const said = { state, transition, reason, endedAt: spike.closedAtMs, headline: headlineOf(spike, state) };
    return [{ id: row.id, seen: row.transition, entry: after.transitions.at(-1), said }];
  });
  return resolves.length === 0 ? Promise.resolve(0) : resolveQuietly(db, resolves, scene.nowMs);
}
