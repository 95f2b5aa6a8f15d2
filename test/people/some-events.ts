import type { WafEvent } from "#model/waf-event.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";

/** An event of the search, full of a person. */
export function personalEvent(
  logId: string,
  occurredAt: number,
  ip: string | null,
  over: Partial<WafEvent> = {},
): WafEvent {
  return {
    logId,
    occurredAt,
    ip,
    route: "search",
    feature: "waf",
    ruleId: "942100",
    ja4: "t13d",
    ua: "Mozilla of a person",
    url: "https://shop.example.test/me?mail=a@b.test",
    asn: "64500",
    country: "DE",
    action: "block",
    message: "matched a@b.test",
    method: "GET",
    requestId: `request ${logId}`,
    matchedKey: 4711,
    facts: 3,
    ...over,
  };
}

/** Many at once, one per second from `from` (epoch ms) on; the address cycles through `ips`. */
export async function insertMany(
  { pool }: MigratedDatabase,
  { zoneId, from, count, ips }: { zoneId: number; from: number; count: number; ips: readonly string[] },
): Promise<void> {
  await pool.query(
    `insert into waf_events (zone_id, occurred_at, log_id, route, rule_id, ip, ua, url, ja4, message, action)
     select $1, to_timestamp($2::float8 / 1000) + n * interval '1 second', 'e' || n, 'search', '942100',
       ($4::text[])[1 + n % cardinality($4::text[])], 'ua', '/me', 'j', 'm', 'block'
     from generate_series(0, $3::integer - 1) n`,
    [zoneId, from, count, ips],
  );
}
