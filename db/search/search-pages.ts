import type pg from "pg";
import { DAY_MS } from "../../src/lib/units.ts";
import type { Span } from "../../src/model/span.ts";
import { inOneTrip } from "../postgres/one-trip.ts";
import { momentOf } from "./search-condition.ts";
import { FOUND_COLUMNS, type FoundColumns, type FoundEvent, toFoundEvent } from "./search-found.ts";
import type { SearchMemory } from "./search-memory.ts";
import { locatePage } from "./search-place.ts";
import type { PageQuery } from "./search-query.ts";
import { type Outline, readOutline, readSegments, readTimes, toCutSegment } from "./search-segments.ts";
import type { Statement } from "./search-statement.ts";

/** Passing over so many events costs less than a second look. */
const MOST_PASSED = 2_000;

/**
 * Planning over a partition per day would take longer than everything else: the statements are planned once per
 * connection, for any day, and the partitions chosen when they run. Without knowing the day Postgres would rather sort
 * than read in order.
 */
const BEGIN = `begin isolation level repeatable read read only; set local plan_cache_mode = force_generic_plan;
  set local enable_sort = off; set local enable_incremental_sort = off; set local enable_seqscan = off;
  set local enable_bitmapscan = off; set local jit = off`;

const ROWS: Statement = {
  name: "longwatch_page",
  text: `select ${FOUND_COLUMNS} from waf_events e
    where e.zone_id = $1::integer and e.occurred_at >= $2::timestamptz and e.occurred_at < $3::timestamptz
    order by e.occurred_at desc, e.log_id desc limit $4::integer offset $5::integer`,
};

export interface FoundPage {
  readonly rows: readonly FoundEvent[];
  /** Of all pages. */
  readonly total: number;
}

interface Page {
  readonly offset: number;
  readonly limit: number;
}

/** One page of everything in a window, newest first, and how much there is, both of one view of the data. */
export async function readPage(
  client: pg.PoolClient,
  memory: SearchMemory,
  zoneId: number,
  query: PageQuery,
): Promise<FoundPage> {
  const page = { offset: query.page * query.pageSize, limit: query.pageSize };
  return (await glance(client, memory, zoneId, query, page)) ?? lookUp(client, memory, zoneId, query, page);
}

/**
 * The answer in one round trip, where what is remembered is still so and the window's last two days hold the page; null
 * where not.
 */
async function glance(
  client: pg.PoolClient,
  memory: SearchMemory,
  zoneId: number,
  window: Span,
  page: Page,
): Promise<FoundPage | null> {
  const { kept } = memory;
  if (kept === null || page.offset + page.limit > MOST_PASSED) return null;
  const lastDay = Math.ceil(window.to / DAY_MS) * DAY_MS - DAY_MS;
  const newest = { from: Math.max(window.from, lastDay - DAY_MS), to: window.to, skip: page.offset };
  const [, outline, rows] = await inOneTrip(client, () => [
    client.query(BEGIN),
    readOutline(client, zoneId, window, kept),
    readRows(client, zoneId, newest, page.limit),
    client.query("commit"),
  ]);
  const total = outline === null ? null : sumUp(outline, memory);
  if (total === null || rows.length < Math.min(page.limit, total - page.offset)) return null;
  return { rows, total };
}

/** Null where something would have to be looked up. */
function sumUp({ segments, cut, stale }: Outline, memory: SearchMemory): number | null {
  if (stale.length > 0) return null;
  let total = 0;
  for (const segment of segments) total += segment.total;
  for (const day of cut) {
    const times = memory.timesOf(day);
    if (times === undefined) return null;
    total += toCutSegment(day, times).total;
  }
  return total;
}

async function lookUp(
  client: pg.PoolClient,
  memory: SearchMemory,
  zoneId: number,
  window: Span,
  page: Page,
): Promise<FoundPage> {
  try {
    const [, segments] = await inOneTrip(client, () => [
      client.query(BEGIN),
      readSegments(client, memory, zoneId, window),
    ]);
    const total = segments.reduce((sum, segment) => sum + segment.total, 0);
    if (page.offset >= total) {
      await client.query("commit");
      return { rows: [], total };
    }
    const { from, to, skip } = await locatePage(segments, page, (counted) =>
      readTimes(client, memory, counted),
    );
    const place = { from: Math.max(from, window.from), to: Math.min(to, window.to), skip };
    const [rows] = await inOneTrip(client, () => [
      readRows(client, zoneId, place, page.limit),
      client.query("commit"),
    ]);
    return { rows, total };
  } catch (thrown) {
    // Fails where the connection is gone: what ended the search says more.
    await client.query("rollback").catch(() => undefined);
    throw thrown;
  }
}

async function readRows(
  client: pg.PoolClient,
  zoneId: number,
  { from, to, skip }: Span & { readonly skip: number },
  limit: number,
): Promise<FoundEvent[]> {
  const values = [zoneId, momentOf(from), momentOf(to), limit, skip];
  const { rows } = await client.query<FoundColumns>({ ...ROWS, values });
  return rows.map(toFoundEvent);
}
