import { DAY_MS } from "../lib/units.ts";

/** The most days of stored counts that a replay of the detector covers. */
export const REPLAYED_DAYS = 60;
/** A replay reads the history of its first minute, too, which is a week and two hours. */
const HISTORY_DAYS = 8;

/** Counts by the minute are kept this long of days that are archived. Counts by the hour and day stay. */
export const MINUTES_KEPT_MS = (REPLAYED_DAYS + HISTORY_DAYS + 1) * DAY_MS;
