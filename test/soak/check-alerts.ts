import type { WebhookReceiver } from "../faults/webhook-receiver.ts";
import type { FinalCheck } from "./final-checks.ts";
import type { SoakWorld } from "./soak-world.ts";

export interface AlertRow {
  readonly id: number;
  readonly state: string;
  /** Null for an alert about Longwatch itself. */
  readonly series: string | null;
  readonly firedAt: number;
  /** The unresolved alert of the incident or rule that the alert's spike is part of. */
  readonly leadId: number | null;
  /** What explains an alert without a message: its spike, its transitions and its outbox rows. */
  readonly account: string;
}

const ALERTS = `
  select a.id::int, a.state, a.zone_id || ' ' || a.rule_id as series,
    (extract(epoch from a.fired_at) * 1000)::float8 as "firedAt",
    (select max(l.id)::int from alerts l where l.spike_id = s.member_of and l.state <> 'resolved') as "leadId",
    concat(a.fingerprint, ' ', a.kind, ' ', a.state, ' since ', to_char(a.fired_at at time zone 'utc', 'HH24:MI:SS'),
      '; spike ', s.id, case when s.closed_at is null then ' open' else ' closed' end,
      ' of incident ' || s.member_of, ' over ' || s.takes_over,
      '; transitions ', (select string_agg(concat(t ->> 'reason', ' at ',
          to_char(to_timestamp((t ->> 'at')::float8 / 1000) at time zone 'utc', 'HH24:MI:SS'),
          ' muted by ' || (t ->> 'mutedBy'), ' silence ' || (t ->> 'silencedBy'), ' to ' || (t ->> 'channels'),
          case when t ->> 'waiting' <> '[]' then ' waiting ' || (t ->> 'waiting') end,
          case when t ->> 'held' <> '[]' then ' held ' || (t ->> 'held') end), ', ')
        from jsonb_array_elements(a.transitions) t),
      '; notifications ', coalesce((select string_agg(concat(n.id, ' of transition ', n.transition, ' ', n.channel, ' ',
          n.state, ' after ', n.attempts, ' attempts', ' ' || n.last_error), ', ' order by n.id)
        from notifications n where n.alert_id = a.id), 'none')) as account
  from alerts a left join spikes s on s.id = a.spike_id order by a.id`;

type Records = Pick<WebhookReceiver, "received" | "digested" | "named">;

/**
 * Returns the open alerts that nobody was sent. An alert in a group is named in a message that was sent since the alert fired. A
 * rule that became part of an incident later notifies nobody, because the attackers are those of the incident's message.
 */
export function findUnheard(
  alerts: readonly AlertRow[],
  { received, digested, named }: Records,
): { readonly unheard: readonly AlertRow[]; readonly explained: number } {
  const heard = new Set([...received.map(({ alertId }) => alertId), ...digested]);
  const silent = alerts.filter(
    ({ id, state, series, firedAt }) =>
      state !== "resolved" &&
      !heard.has(id) &&
      (series === null || (named.get(series) ?? Number.NEGATIVE_INFINITY) < firedAt),
  );
  const unheard = silent.filter(({ leadId }) => leadId === null || !heard.has(leadId));
  return { unheard, explained: silent.length - unheard.length };
}

/**
 * Checks the alerts by the receiver's own records, because the service's records of its deliveries do not prove them.
 */
export async function checkAlerts({ postgres, receiver }: SoakWorld): Promise<FinalCheck> {
  const alerts = await postgres.query<AlertRow>(ALERTS);
  const { unheard, explained } = findUnheard(alerts, receiver);
  const keys = receiver.received.map(({ id }) => id);
  const repeats = keys.length - new Set(keys).size;
  const detail =
    unheard.length === 0
      ? `${alerts.length} alerts, ${keys.length} messages, of which ${repeats} came twice under one id, ${explained} explained by an incident`
      : `not heard of: ${unheard.map(({ id, account }) => `${id} ${account}`).join("\n  ")}`;
  return { name: "every open alert delivered", detail, isMet: unheard.length === 0 };
}
