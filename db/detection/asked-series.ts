import { type SQL, sql } from "drizzle-orm";
import type { SeriesKey } from "#model/series-key.ts";

/** Returns a table `asked(zone_id, rule_id)` of these series, for the `from` of a statement. */
export function askedSeries(series: readonly SeriesKey[]): SQL {
  const zones = sql.param(series.map(({ zoneId }) => zoneId));
  const rules = sql.param(series.map(({ ruleId }) => ruleId));
  return sql`unnest(${zones}::integer[], ${rules}::text[]) as asked(zone_id, rule_id)`;
}
