import { DAY_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import { toDay } from "#model/horizon.ts";
import type { WeekFigures } from "#model/weekly-digest.ts";
import type { Zones } from "#model/zones.ts";
import { describeProof, describeWeek } from "./describe-week.ts";
import { buildSelfMessage, type SelfMessageFacts } from "./self-message.ts";

const WEEK_MS = 7 * DAY_MS;
/** The epoch was a Thursday. */
const FIRST_MONDAY_MS = 4 * DAY_MS;

/** Week from Monday to Monday in UTC; epoch ms. */
export interface Week {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Returns the last week that is over at a time. */
export function lastWeek(nowMs: number): Week {
  const toMs = nowMs - ((((nowMs - FIRST_MONDAY_MS) % WEEK_MS) + WEEK_MS) % WEEK_MS);
  return { fromMs: toMs - WEEK_MS, toMs };
}

/** One alert carries the digest of a week to its channels. */
export function weeklyFingerprint(fromMs: number): string {
  return digest(["weekly", toDay(fromMs)]);
}

interface WeeklyFacts extends Pick<SelfMessageFacts, "alertId" | "fingerprint" | "alert" | "reason"> {
  readonly figures: WeekFigures;
  readonly zones: Zones;
}

/** Builds the message of a digest. It is over from the beginning, so that it pages nobody. */
export function buildWeeklyMessage({ figures, zones, ...facts }: WeeklyFacts): AlertMessage {
  const headline = `Week of ${figures.from}: ${describeProof(figures)}`;
  // The headline has the first row.
  const [, ...rows] = describeWeek(figures, zones);
  return {
    ...buildSelfMessage({ ...facts, severity: "info", zoneId: null, headline }),
    kind: "weekly",
    details: rows.flatMap(({ label, lines }) => lines.map(({ text }) => `${label}: ${text}`)),
  };
}
