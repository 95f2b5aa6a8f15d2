/** Times the plan of a month of many events in files, and a what-if over its counts. */
import { Buffer } from "node:buffer";
import path from "node:path";
import { classifyRequests } from "#archive/rules/sql/classify-requests.ts";
import { countRequests, readCounts } from "#archive/rules/sql/count-requests.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { planReview } from "#detection/rules/review/plan-review.ts";
import { templatesOf } from "#detection/rules/verdict/path-template.ts";
import { DAY_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { countChoice, countMargins } from "#model/review.ts";

const DAYS = 30;
const START = Date.UTC(2026, 9, 30);
/** So many events does a request have on average. */
const EVENTS_PER_REQUEST = 2;

export interface TimedPlan {
  readonly events: number;
  readonly planMs: number;
  readonly planCpuMs: number;
  readonly rows: number;
  readonly bytes: number;
  readonly whatIfMs: number;
}

/** `createCold` returns a DuckDB whose process does not run yet. */
export async function timePlan(
  events: number,
  folder: string,
  writer: Duckdb,
  createCold: () => Duckdb,
): Promise<TimedPlan> {
  const files = Array.from({ length: DAYS }, (_, day) => ({
    path: path.join(folder, `${day}.parquet`),
    format: 2,
  }));
  await writer.run(
    files.map((file, day) => ({
      sql: writeDay(file.path, day, Math.round(events / DAYS / EVENTS_PER_REQUEST)),
    })),
  );
  const usual = Array.from({ length: 20 }, (_, index) => ({
    dimension: "asn" as const,
    value: String(64_500 + index),
    since: START,
  }));
  const split = START + 23 * DAY_MS;
  const classified = classifyRequests(
    { files, openRows: null },
    { from: START, to: START + DAYS * DAY_MS },
    {
      findings: [{ kind: "ip", key: "20.1.1.1", from: START, to: split, says: "hostile" }],
      usual,
      known: [],
      crawlers: [{ agent: "googlebot", networks: ["15169"] }],
      toActionSql: BUILT_IN_ACTIONS.toSql,
    },
  );
  const duckdb = createCold();
  try {
    let planCpuMs = 0;
    const startedAt = performance.now();
    const results = await duckdb.run([...classified.prepare, countRequests(classified, split)], {
      onEnd: (cpuMs) => {
        planCpuMs = cpuMs;
      },
    });
    const counts = readCounts(
      (results.at(-1) ?? []).map(([text]) => (typeof text === "string" ? text : "")),
      templatesOf,
    );
    const { table, seen } = counts;
    const learn = { from: START / DAY_MS, to: split / DAY_MS };
    const judge = { from: learn.to, to: learn.to + 7 };
    const { choice } = planReview(counts, learn);
    const planMs = performance.now() - startedAt;
    const askedAt = performance.now();
    countChoice(table, { ...choice, block: choice.block.slice(1) }, judge);
    countMargins(table, { ...choice, block: choice.block.slice(1) }, judge);
    const whatIfMs = performance.now() - askedAt;
    const bytes = Buffer.byteLength(JSON.stringify(table));
    return {
      events: seen.reduce((sum, one) => sum + one.events, 0),
      planMs,
      planCpuMs,
      rows: table.rows.length,
      bytes,
      whatIfMs,
    };
  } finally {
    await duckdb.close();
  }
}

/** Events of one to three rules a request, of 60 rules, 60,000 addresses and 5,000 paths of one template. */
function writeDay(file: string, day: number, requests: number): string {
  return `copy (with sent as (select i, hash(i * 7 + ${day} * 1000003) as h from range(${requests}) t(i)),
    events as (select *, hash(h, k) as own from sent, lateral (select unnest(range(1 + (h % 3)::bigint)) as k))
    select to_timestamp(${START / 1_000 + day * 86_400} + i * 86400.0 / ${requests}) as occurred_at, 101::integer as zone_id,
      lower(printf('%032x', own)) as log_id, 'search' as route, 'waf' as feature,
      (941000 + (((h >> 5) % 23) * ((h >> 5) % 3 + 1) + k * 7) % 60 * 10)::varchar as rule_id,
      concat_ws('.', (h >> 16) % 20 + 20, (h >> 22) % 10, (h >> 28) % 20, (h >> 34) % 15) as ip, printf('t13d1516h2_%012x', (h >> 12) % 400) as ja4,
      'Mozilla/5.0 (X11; Linux x86_64) Chrome/' || ((h >> 20) % 300) as ua, 'https://shop.example.test/p/' || ((h >> 10) % 5000) || '?q=' || (h % 100000) as url,
      (64500 + (h >> 9) % 300)::varchar as asn, 'DE' as country, case when (own >> 3) % 4 = 0 then 'block' else 'log' end as action,
      'SQL injection detected in the request' as message, 'GET' as method, lower(printf('%016x%016x', h, h >> 3)) as request_id,
      'shop.example.test' as host, '/p/' || ((h >> 10) % 5000) as path, (h % 100000)::integer as matched_key,
      (case when h % 5 = 0 then 373 when h % 5 < 3 then 351 else 341 end)::smallint as facts
    from events order by occurred_at, log_id) to '${file}' (format parquet, compression zstd)`;
}
