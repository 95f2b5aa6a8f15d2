import type { Queryable } from "#db/client.ts";
import { writeLooks } from "#db/coverage/covered-hours.ts";
import { readHourContents, readHourIds } from "#db/coverage/hour-contents.ts";
import { reopenHours } from "#db/coverage/reopen-hours.ts";
import { noteLacking, readMovedFrom } from "#db/ingest/revise-events.ts";
import { HOUR_MS } from "#lib/units.ts";
import { type HourLooks, type LookLacks, nextLook } from "#model/covered-hour.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { digestIds } from "#stages/coverage/id-digest.ts";

/** Maximum number of log ids that a look names. */
const MAX_NAMED = 20;
const MAX_RULES = 200;

const MOVED = "The search shows an event of this hour at another time now.";

/** Collects the log ids that one search of an hour has shown and compares them with the stored events. */
export interface SearchWatch {
  /** Adds the events of some pages. */
  readonly add: (events: readonly WafEvent[], pages: number) => void;
  /** Stores the search as a look at its hour, and notes the stored events that it did not show. */
  recordLook(tx: Queryable, zoneId: number, hour: LookedAtHour): Promise<void>;
}

interface LookedAtHour {
  readonly startsAt: number;
  /** When the search began, epoch ms. */
  readonly at: number;
  /** The hour's looks so far, locked in this transaction. */
  readonly looks: HourLooks;
}

export function createSearchWatch(): SearchWatch {
  const shown = new Map<string, number>();
  let pages = 0;
  return {
    add(events, read) {
      pages += read;
      for (const { logId, occurredAt } of events) shown.set(logId, occurredAt);
    },
    async recordLook(tx, zoneId, { startsAt, at, looks }) {
      const isIn = (time: number) => time >= startsAt && time < startsAt + HOUR_MS;
      const ids = [...shown].flatMap(([logId, time]) => (isIn(time) ? [logId] : []));
      const digest = digestIds(ids);
      const stored = await readHourContents(tx, zoneId, startsAt);
      const isExact = stored.count === ids.length && stored.ids === digest;
      const lacking = isExact ? [] : await readLacking(tx, zoneId, startsAt, new Set(ids));
      await noteLacking(tx, zoneId, { startsAt, atMs: at, logIds: lacking.map(({ logId }) => logId) });
      const moved = await readMovedFrom(tx, zoneId, { startsAt, logIds: ids });
      await reopenHours(
        tx,
        zoneId,
        moved.map((hour) => ({ startsAt: hour, reason: MOVED })),
        at,
      );
      const seen = { at, pages, count: ids.length, ids: digest, ...toLacks(lacking) };
      await writeLooks(tx, zoneId, new Map([[startsAt, { ...looks, search: nextLook(looks.search, seen) }]]));
    },
  };
}

interface LackingEvent {
  readonly logId: string;
  readonly ruleId: string;
}

async function readLacking(
  tx: Queryable,
  zoneId: number,
  startsAt: number,
  shown: ReadonlySet<string>,
): Promise<LackingEvent[]> {
  const stored = await readHourIds(tx, zoneId, startsAt);
  const lacking = stored.flatMap((event) => (shown.has(event.logId) ? [] : [[event.logId, event] as const]));
  return [...new Map(lacking).values()];
}

function toLacks(lacking: readonly LackingEvent[]): { lacks?: LookLacks } {
  if (lacking.length === 0) return {};
  const logIds = lacking.map(({ logId }) => logId);
  const rules: Record<string, number> = {};
  for (const { ruleId } of lacking) rules[ruleId] = (rules[ruleId] ?? 0) + 1;
  return {
    lacks: {
      count: lacking.length,
      ids: logIds.slice(0, MAX_NAMED),
      digest: digestIds(logIds),
      // Above this number of rules the differences are not named, so they equal no others.
      rules: Object.keys(rules).length > MAX_RULES ? {} : rules,
    },
  };
}
