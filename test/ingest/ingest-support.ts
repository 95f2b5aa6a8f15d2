import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import type { Emulator } from "#emulator/emulator.ts";
import type { StoredPageFacts } from "#ingest/rules/read-page.ts";
import type { Clock } from "#lib/clock.ts";
import { HOUR_MS } from "#lib/units.ts";
import { nextLook } from "#model/covered-hour.ts";
import { startOfHour } from "#model/horizon.ts";
import { toCountsLook } from "#proof/rules/judge-counts.ts";
import { atEnd } from "#test/support/at-end.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import type { OracleEvent } from "../emulator/support.ts";
import { createIngestJobs, ZONE } from "./ingest-jobs.ts";

export { silent, ZONE } from "./ingest-jobs.ts";

type Run = (signal?: AbortSignal) => Promise<string | void>;

export interface IngestTest {
  readonly database: MigratedDatabase;
  /** The reports of the jobs, page by page. */
  readonly pages: StoredPageFacts[];
  readonly poll: Run;
  readonly walk: Run;
  readonly reconcile: Run;
  readonly repair: Run;
  readonly seal: Run;
}

/**
 * Enters a zone that is watched since long ago. Its hours are sealed without an event, except those that `isOpen` names by their
 * starts, because the first poll of a zone that nobody has watched searches each of 72 hours, which most tests do not need.
 */
export async function enterWatched(
  { pool }: Pick<MigratedDatabase, "pool">,
  now: number,
  isOpen: (startsAt: number) => boolean,
): Promise<void> {
  const before = Array.from({ length: 73 }, (_, n) => startOfHour(now) - (n + 1) * HOUR_MS);
  const sealed = before.filter((startsAt) => !isOpen(startsAt));
  const empty = { startsAt: 0, upstreamCount: 0, storedCount: 0, differing: [] };
  const counts = nextLook(undefined, toCountsLook(empty, new Map(), now - HOUR_MS));
  await pool.query(
    `insert into coverage_windows (zone_id, starts_at, state, searched_through, reconciled_at, upstream_count, sealed_at, looks, evidence)
     select $1, hour, 'sealed', hour + interval '1 hour', $2, 0, $2, jsonb_build_object('counts', $3::jsonb),
       '{"stored": {"count": 0, "ids": "0000000000000000"}}'
     from unnest($4::timestamptz[]) as hour`,
    [ZONE, new Date(now - HOUR_MS), JSON.stringify(counts), sealed.map((startsAt) => new Date(startsAt))],
  );
}

/** For `enterWatched`: so many hours before the running one are open. */
export const newest = (now: number, hours: number) => (startsAt: number) =>
  startsAt >= startOfHour(now) - hours * HOUR_MS;

/** The jobs that copy and prove, of one replica, over a real socket to the emulator (or to `url`) and a database of their own. */
export async function openIngest(
  emulator: Emulator,
  options: {
    url?: string;
    database?: MigratedDatabase;
    erasures?: ErasureGuard;
    told?: string[];
    clock?: Clock;
    freshMs?: number;
    /** The zone is watched since long ago, and so many hours before this one are undecided. Left out: a first start. */
    openHours?: number;
  } = {},
): Promise<IngestTest> {
  const database = options.database ?? (await createMigratedDatabase());
  const pages: StoredPageFacts[] = [];
  const { accessKey } = emulator;
  const jobs = createIngestJobs({
    database,
    url: options.url ?? emulator.url,
    accessKey,
    clock: options.clock ?? (() => emulator.now()),
    observer: { pageStored: (facts) => void pages.push(facts) },
    told: (nudge) => void options.told?.push(nudge),
    ...(options.erasures === undefined ? {} : { erasures: options.erasures }),
    ...(options.freshMs === undefined ? {} : { freshMs: options.freshMs }),
  });
  if (options.database === undefined) atEnd(() => database.drop());
  const { openHours } = options;
  if (openHours !== undefined)
    await enterWatched(database, emulator.now(), newest(emulator.now(), openHours));
  const { close, ...runs } = jobs;
  atEnd(() => close());
  return { database, pages, ...runs };
}

export interface StoredRow {
  readonly log_id: string;
  readonly at: number;
  readonly route: string;
  readonly feature: string | null;
  readonly rule_id: string | null;
  readonly ip: string | null;
  readonly ja4: string | null;
  readonly ua: string | null;
  readonly url: string | null;
  readonly asn: string | null;
  readonly country: string | null;
  readonly action: string | null;
  readonly message: string | null;
}

export async function storedRows({ pool }: MigratedDatabase): Promise<StoredRow[]> {
  const { rows } = await pool.query<StoredRow>(
    `select log_id, (extract(epoch from occurred_at) * 1000)::float8 as at, route, feature, rule_id, ip, ja4, ua, url,
            asn, country, action, message
     from waf_events where zone_id = $1 order by occurred_at, log_id`,
    [ZONE],
  );
  return rows;
}

/** The oracle's events as they must be stored once the search has shown them. */
export function expectedRows(events: readonly OracleEvent[]): Omit<StoredRow, "route">[] {
  const storable = (text: string) => text.replaceAll("\0", "\uFFFD").toWellFormed();
  return events
    .map((event) => ({
      log_id: event.logId,
      at: event.timestamp,
      feature: event.feature,
      rule_id: event.ruleId,
      ip: event.ip,
      ja4: event.ja4,
      ua: storable(event.ua),
      url: storable(event.url),
      asn: event.asn,
      country: event.country,
      action: event.action,
      message: storable(String(event.log["Message"])),
    }))
    .sort((a, b) => a.at - b.at || (a.log_id < b.log_id ? -1 : 1));
}

export function withoutRoute(rows: readonly StoredRow[]): Omit<StoredRow, "route">[] {
  return rows.map(({ route, ...row }) => {
    if (route !== "search" && route !== "list") throw new Error(`no such route: ${JSON.stringify(route)}`);
    return row;
  });
}

/**
 * A platform in front of the emulator that changes the JSON of its answers; what `change` returns is sent as it is, null
 * as a 500. `asked` is the request's body.
 */
export async function openChangingPlatform(
  emulator: Emulator,
  change: (body: string, path: string, asked: string) => string | null | Promise<string | null>,
): Promise<string> {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url ?? "/";
    const asked = Buffer.concat(chunks).toString();
    const original = await fetch(emulator.url + path, {
      method: request.method ?? "GET",
      headers: { AccessKey: emulator.accessKey, "content-type": "application/json" },
      ...(asked === "" ? {} : { body: asked }),
    });
    const body = await change(await original.text(), path, asked);
    const status = body === null ? 500 : original.status;
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  };
  const server = createServer((request, response) => {
    // A caller that was killed in the middle of its request is nothing to fail for.
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
