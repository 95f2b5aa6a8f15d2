import type { FinalCheck } from "./final-checks.ts";
import type { SoakWorld } from "./soak-world.ts";

interface AlertRow {
  readonly id: number;
  readonly state: string;
  readonly series: string;
  readonly firedAt: number;
  /** What explains an alert without a message: its spike, its transitions and its outbox rows. */
  readonly account: string;
}

const ALERTS = `
  select a.id::int, a.state, a.zone_id || ' ' || a.rule_id as series,
    (extract(epoch from a.fired_at) * 1000)::float8 as "firedAt",
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

/**
 * Checks the alerts by the receiver's own records, because the service's records of its deliveries do not prove them.
 */
export async function checkAlerts({ postgres, receiver }: SoakWorld): Promise<FinalCheck> {
  const alerts = await postgres.query<AlertRow>(ALERTS);
  const heard = new Set([...receiver.received.map(({ alertId }) => alertId), ...receiver.digested]);
  // An alert in a group is named in a message of the group that was sent since the alert fired.
  const isNamed = ({ series, firedAt }: AlertRow) =>
    (receiver.named.get(series) ?? Number.NEGATIVE_INFINITY) >= firedAt;
  const unheard = alerts.filter((alert) => {
    return alert.state !== "resolved" && !heard.has(alert.id) && !isNamed(alert);
  });
  const keys = receiver.received.map(({ id }) => id);
  const repeats = keys.length - new Set(keys).size;
  const detail =
    unheard.length === 0
      ? `${alerts.length} alerts, ${keys.length} messages, of which ${repeats} came twice under one id`
      : `not heard of: ${unheard.map(({ id, account }) => `${id} ${account}`).join("\n  ")}`;
  return { name: "every open alert delivered", detail, isMet: unheard.length === 0 };
}
