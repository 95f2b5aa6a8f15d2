import { listKnownSources, toKnownSource } from "#db/detection/known-sources.ts";
import { compareSourceHours } from "#jobs/detection/count-source-hours.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createKnownSources, type KnownSource } from "#model/known-source.ts";
import type { Check, Checked } from "./check.ts";

/** The source series are kept for eight days. */
const KEPT_HOURS = 8 * 24;

/** Compares the counted hours of the source series with a recount of their events. */
export async function checkSources(
  { db, zoneId, now, onStep, from, to }: Checked,
  fromFile: readonly KnownSource[],
): Promise<Check> {
  onStep("sources", 0);
  const oldest = Math.floor(now / HOUR_MS) - KEPT_HOURS;
  const fromHour = Math.max(Math.floor(from / HOUR_MS), oldest);
  const list = [...fromFile, ...(await listKnownSources(db)).map(toKnownSource)];
  const known = createKnownSources(list, now)(zoneId);
  const found = await compareSourceHours(db, zoneId, { fromHour, toHour: Math.ceil(to / HOUR_MS), known });
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  return {
    name: "sources",
    sides: ["events", "the hour's peaks"],
    compared: "the counted hours of the source series",
    differences: found.map(({ hour, stored, recounted }) => ({
      at: hour * HOUR_MS,
      ruleId: null,
      expected: sum(recounted),
      found: sum(stored),
      detail: "the largest counts of the hour, added up",
    })),
    notes: [],
    failure: null,
  };
}
