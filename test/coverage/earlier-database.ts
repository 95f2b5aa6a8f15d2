import { createDatabase } from "#db/client.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { HOUR_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import type { OracleEvent } from "../emulator/support.ts";

/** An hour as the version before migration 0012 of 0.2 left it. */
export interface EarlierHour {
  readonly startsAt: number;
  readonly events: readonly EarlierEvent[];
  /** The counts in the evidence of the seal, if they differ from the number of events. */
  readonly upstream?: number;
  readonly stored?: number;
}

interface EarlierEvent extends OracleEvent {
  /** True if only the list has shown the event. */
  readonly isUnresolved?: boolean;
}

/** Stores sealed hours as the version before migration 0012 of 0.2 did: events, marks for the roll-up, coverage, evidence. */
export async function insertEarlierHours(
  url: string,
  zoneId: number,
  hours: readonly EarlierHour[],
  sealedAtMs: number,
): Promise<void> {
  const database = createDatabase({ url, max: 2, applicationName: "earlier", onError: () => undefined });
  await ensurePartitions(database, [...new Set(hours.map(({ startsAt }) => toDay(startsAt)))]);
  const at = new Date(sealedAtMs).toISOString();
  const events = hours.flatMap((hour) => hour.events);
  // Texts that a request chose are left out; nothing here depends on them.
  const rows = events.map((event) => ({
    log_id: event.logId,
    rule_id: event.ruleId,
    occurred_at: new Date(event.timestamp),
    route: event.isUnresolved === true ? "list" : "search",
    action: event.action,
    ...(event.isUnresolved === true
      ? { ip: event.ip.replace(/\d+$/, "*") }
      : { ip: event.ip, feature: event.feature, ja4: event.ja4 }),
  }));
  await database.pool.query(
    `insert into waf_events (zone_id, occurred_at, log_id, route, feature, rule_id, ip, ja4, action)
     select $1, occurred_at, log_id, route, feature, rule_id, ip, ja4, action
     from jsonb_populate_recordset(null::waf_events, $2)`,
    [zoneId, JSON.stringify(rows)],
  );
  await database.pool.query(
    `insert into dirty_buckets (zone_id, rule_id, minute)
     select distinct zone_id, coalesce(rule_id, ''), date_trunc('minute', occurred_at) from waf_events where zone_id = $1`,
    [zoneId],
  );
  const covered = hours.map((hour) => {
    const { startsAt, events: held, upstream = held.length, stored = held.length } = hour;
    return {
      starts_at: new Date(startsAt),
      searched_through: new Date(startsAt + HOUR_MS),
      stored_count: held.length,
      upstream_count: upstream,
      evidence: {
        settleMs: 900_000,
        list: { passStartedAt: at },
        search: { startedAt: at },
        counts: { readAt: at, upstream, stored, surplusCells: 0 },
        lastNewAt: null,
      },
    };
  });
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, searched_through, closing_search_at, reconciled_at, stored_count,
       upstream_count, state, sealed_at, evidence)
     select $1, starts_at, searched_through, $3, $3, stored_count, upstream_count, 'sealed', $3, evidence
     from jsonb_to_recordset($2) as h(starts_at timestamptz, searched_through timestamptz, stored_count integer,
       upstream_count integer, evidence jsonb)`,
    [zoneId, JSON.stringify(covered), at],
  );
  await database.close();
}
