import { ensurePartitions } from "#db/postgres/partitions.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";

export const MANY_DAY = Date.UTC(2026, 10, 18);

/**
 * So many events of zone 101 over one day, about 260 bytes each in an export besides the filler of the URL; several of them in each
 * millisecond.
 */
export async function storeMany(
  database: MigratedDatabase,
  count: number,
  { filler = 40, rules = 400 } = {},
): Promise<void> {
  await ensurePartitions(database, ["2026-11-18"]);
  await database.pool.query(
    `insert into waf_events (occurred_at, zone_id, log_id, route, feature, rule_id, ip, ja4, ua, url, asn, country, action)
     select '2026-11-18'::timestamptz + ((i / 3) * (86000000.0 / $1 * 3)) * interval '1 ms', 101, md5(i::text), 'search',
       'waf', (930000 + i % $3::integer)::text, '203.0.113.' || i % 255, 't13d1516h2_' || md5((i % 100)::text),
       'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/12' || i % 30,
       'https://shop.example.test/catalog/item?id=' || i || case when i % 16 = 0 then '&q="' else '&q=' end
         || repeat('x', $2::integer), (64000 + i % 900)::text, 'DE', 'block'
     from generate_series(1, $1::integer) i`,
    [count, filler, rules],
  );
  await database.pool.query("analyze waf_events");
}
