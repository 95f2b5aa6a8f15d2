import { setTimeout as delay } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { createDatabase, type Database } from "#db/client.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { createRollUpTrendsJob } from "#jobs/detection/roll-up-trends.ts";
import { UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import type { AnyJob } from "#store/queue/define-job.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { silent } from "../ingest/ingest-support.ts";

export const ZONE = 101;

export function makeEvent(event: Partial<WafEvent> & Pick<WafEvent, "occurredAt" | "logId">): WafEvent {
  const unknown = { feature: null, ip: null, ja4: null, ua: null, url: null, asn: null, country: null };
  return {
    route: "search",
    ruleId: "942100",
    action: "block",
    message: null,
    ...unknown,
    ...UNKNOWN_FACTS,
    ...event,
  };
}

/** Stores events as a page of ingest does; `zoneId` is theirs. */
export async function storeAll(
  database: Database,
  events: readonly WafEvent[],
  { zoneId = ZONE, expectNew = true } = {},
): Promise<void> {
  if (events.length === 0) return;
  await storeEvents(database, zoneId, events, { expectNew });
}

export async function openTrendDatabase(days: readonly string[]): Promise<MigratedDatabase> {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  await ensurePartitions(database, days);
  return database;
}

/** Connections of their own, by a name that pg_stat_activity shows. */
export function connectAs(name: string, { url }: MigratedDatabase): Database {
  const database = createDatabase({ url, max: 2, applicationName: name, onError: () => undefined });
  onTestFinished(() => database.close());
  return database;
}

export function createRollUp(
  database: Database,
  options: { batch?: number } = {},
): () => Promise<string | void> {
  return () => runJob(createRollUpTrendsJob({ database, log: silent, ...options }));
}

export function runJob(job: AnyJob, signal = new AbortController().signal) {
  return job.run({} as never, signal);
}

/** Asks until there is an answer, for as long as the test may last. */
async function eventually<T>(ask: () => Promise<T | null | undefined | false>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    await delay(5);
  }
}

/** The backend of `name` that waits for a lock. */
export async function waitingBackend({ pool }: Database, name: string): Promise<number> {
  return eventually(async () => {
    const { rows } = await pool.query<{ pid: number }>(
      "select pid from pg_stat_activity where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'",
      [name],
    );
    return rows[0]?.pid;
  });
}

export async function countStale({ pool }: Database): Promise<number> {
  const { rows } = await pool.query<{ n: number }>("select count(*)::integer as n from dirty_buckets");
  return rows[0]?.n ?? -1;
}
