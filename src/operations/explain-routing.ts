import { readRaisableSpikes } from "#db/alerting/alerts.ts";
import type { Queryable } from "#db/client.ts";
import { readActiveSilences } from "#jobs/alerting/read-active-silences.ts";
import type { Log } from "#lib/log.ts";
import type { Subject } from "#model/subject.ts";
import { toAlertSpike } from "#stages/alerting/alert-spike.ts";
import type { Context } from "#stages/alerting/assess.ts";
import { type ExplainedAlert, explainAlert } from "#stages/alerting/explain-alert.ts";
import type { Routing } from "#stages/alerting/routing/routing.ts";
import { findChannel } from "#stages/delivery/channels/registry.ts";

export interface RoutingToExplain {
  readonly routing: Routing;
  readonly channels: readonly { readonly name: string; readonly kind: string }[];
  readonly nowMs: number;
}

/** Silences in force and open spikes: what counts beside the routes. */
export type LiveState = Pick<Context, "silences" | "firing">;

/** Says who would be notified of an alert that does not exist, by the functions that decide in the service. */
export function explainRouting(
  subject: Subject,
  { routing, channels, nowMs }: RoutingToExplain,
  live: LiveState = { silences: [], firing: [] },
): ExplainedAlert {
  const kinds = new Map(channels.map(({ name, kind }) => [name, kind]));
  const laterMessageOf = (channel: string) =>
    findChannel(kinds.get(channel))?.capabilities.laterTransitions ?? "post-anew";
  return explainAlert(subject, { nowMs, routing, asks: [], incidents: new Set(), laterMessageOf, ...live });
}

export async function readLiveState(
  db: Queryable,
  log: Pick<Log, "warn">,
  nowMs: number,
): Promise<LiveState> {
  const spikes = (await readRaisableSpikes(db, { closedAfterMs: nowMs })).map((spike) => toAlertSpike(spike));
  const firing = spikes.filter(({ closedAtMs }) => closedAtMs === null);
  return { silences: await readActiveSilences(db, log, nowMs), firing };
}
