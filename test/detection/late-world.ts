import { randomUUID } from "node:crypto";
import { type Routing, routeToAll } from "#alerts/rules/routing/routing.ts";
import { storePage } from "#db/ingest/store-page.ts";
import { acquireLease } from "#db/postgres/leases.ts";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import type { SourceEvent } from "#detection/rules/sources/source-event.ts";
import { createDetectSourcesJob } from "#jobs/detection/detect-sources.ts";
import { createDetectSpikesJob } from "#jobs/detection/detect-spikes.ts";
import { createJudgeLateJob } from "#jobs/detection/judge-late.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { WafEvent } from "#model/waf-event.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { silent } from "../ingest/ingest-support.ts";
import { createRollUp, makeEvent, runJob } from "./trend-support.ts";

export type TimedEvent = SourceEvent & { readonly minute: number };

/** Zones of a database whose events, searches and ticks the test drives. */
export function createLateWorld(
  database: MigratedDatabase,
  zoneIds: readonly number[],
  routing: () => Routing = () => routeToAll(["on-call"]),
) {
  let now = 0;
  const deps = {
    database,
    clock: () => now,
    log: silent,
    zoneIds,
    afterSpikes: () => undefined,
    afterAlerts: () => Promise.resolve(),
    sourceMode: () => "on" as const,
    knownSources: () => [],
    settingsOf: () => "settings",
    sensitivity: () => ({ z: 3.5, floor: 10 }),
    lowestFloor: () => 10,
    routing,
  };
  let [rules, sources] = [createDetectSpikesJob(deps), createDetectSourcesJob(deps)];
  const rollUp = createRollUp(database);

  /** Stores events as a search does that has read the zone up to a minute. */
  async function store(zoneId: number, events: readonly TimedEvent[]): Promise<void> {
    if (events.length === 0) return;
    const name = `test.${randomUUID()}`;
    const fence = await acquireLease(database.db, { name, holder: name, ttlMs: 600_000 });
    if (fence === null) throw new Error("a lease that nobody knows is taken");
    const page = {
      zoneId,
      events: events.map(toWafEvent),
      lease: { name, fence },
      expectNew: true,
      storedAt: now,
      quarantined: [],
      rawBlocks: [],
    };
    await storePage(database, page, () => Promise.resolve());
  }

  /** Notes that every hour from `fromMinute` on was searched up to a minute. */
  async function search(zoneId: number, fromMinute: number, through: number): Promise<void> {
    await database.pool.query(
      `insert into coverage_windows (zone_id, starts_at, searched_through)
       select $1, to_timestamp(hour * 3600), to_timestamp(least(hour * 3600 + 3600, $3::bigint * 60))
       from generate_series($2::bigint / 60, ($3::bigint - 1) / 60) as hour
       on conflict (zone_id, starts_at) do update set searched_through = excluded.searched_through`,
      [zoneId, fromMinute, through],
    );
  }

  return {
    store,
    search,
    setMinute(minute: number): void {
      now = minute * MINUTE_MS + 1_000;
    },
    async tick(): Promise<void> {
      await rollUp();
      await runJob(rules);
      await runJob(sources);
    },
    /** The detectors forget what they remember from tick to tick. */
    restart(): void {
      [rules, sources] = [createDetectSpikesJob(deps), createDetectSourcesJob(deps)];
    },
    judgeLate: (signal?: AbortSignal) => runJob(createJudgeLateJob(deps), signal),
    rollUp,
    async readSpikes(zoneId: number) {
      const rows = await database.db.select().from(spikes).orderBy(spikes.ruleId, spikes.openedAt);
      return rows.filter((row) => row.zoneId === zoneId);
    },
    readAlerts: () => database.db.select().from(alerts).orderBy(alerts.id),
    readNotifications: () => database.db.select().from(notifications).orderBy(notifications.id),
    async countUnjudged(): Promise<number> {
      const { rows } = await database.pool.query<{ n: number }>(
        `select count(*)::integer as n from coverage_windows w left join judged_hours j using (zone_id, starts_at)
         where w.starts_at + interval '80 minutes' <= to_timestamp($1::float8 / 1000)
           and w.starts_at >= to_timestamp($1::float8 / 1000) - interval '96 hours'
           and w.zone_id = any($2) and (j.events is distinct from w.stored_count or j.rules_from > w.starts_at
             or j.rules_through < w.starts_at + interval '1 hour' or j.rules_through is null)`,
        [now, zoneIds],
      );
      return rows[0]?.n ?? -1;
    },
  };
}

let serial = 0;
function toWafEvent({ minute, ...event }: TimedEvent): WafEvent {
  serial += 1;
  const occurredAt = minute * MINUTE_MS + (serial % 59_000);
  return makeEvent({ ...event, occurredAt, logId: `late/${serial}` });
}

export function daysOf(fromMinute: number, toMinute: number): string[] {
  const days: string[] = [];
  for (let at = fromMinute * MINUTE_MS; at <= toMinute * MINUTE_MS + 24 * HOUR_MS; at += 24 * HOUR_MS)
    days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}
