import type { Queryable } from "../../db/client.ts";
import {
  countResolved,
  readDoubledIds,
  readHourContents,
  readHourIds,
} from "../../db/coverage/hour-contents.ts";
import { writeLooks } from "../../db/coverage/hour-looks.ts";
import { digestIds } from "../../src/coverage/id-digest.ts";
import { HOUR_MS } from "../../src/lib/units.ts";
import { type HourLooks, type LookLacks, nextLook } from "../../src/model/look.ts";
import type { WafEvent } from "../../src/model/waf-event.ts";

/** Maximum number of log ids that are recorded of events that a search lacks. */
const MAX_NAMED = 20;
const MAX_RULES = 200;

/** Collects the log ids that one search has shown and compares them with the stored events. */
export interface SearchWatch {
  /** Adds a page of events, in order. */
  readonly add: (events: readonly WafEvent[]) => void;
  /**
   * Returns a sentence if the search lacks events of [from, to) that searches showed before, else null. Call it when
   * every event before `to` is stored.
   */
  findShortfall(tx: Queryable, zoneId: number, span: { from: number; to: number }): Promise<string | null>;
  /** Stores the search as a look at its hour, with the ids of stored events that the search did not show. */
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
  const within = (from: number, to: number) =>
    [...shown].flatMap(([logId, at]) => (at >= from && at < to ? [logId] : []));
  return {
    add(events) {
      pages++;
      for (const { logId, occurredAt } of events) shown.set(logId, occurredAt);
    },
    async findShortfall(tx, zoneId, { from, to }) {
      if (to <= from) return null;
      const known = await countResolved(tx, zoneId, { fromMs: from, toMs: to });
      const ids = new Set(within(from, to));
      const count = ids.size;
      if (count >= known) return null;
      // An event under two times was shown under a false one once; it need not be in this span.
      const doubled = await readDoubledIds(tx, zoneId, { fromMs: from, toMs: to });
      if (count >= known - doubled.filter((id) => !ids.has(id)).length) return null;
      return `The search shows ${count} of ${known} events from ${toText(from)} to ${toText(to)} UTC.`;
    },
    async recordLook(tx, zoneId, { startsAt, at, looks }) {
      const ids = within(startsAt, startsAt + HOUR_MS);
      const digest = digestIds(ids);
      const stored = await readHourContents(tx, zoneId, startsAt);
      const isExact = stored.count === ids.length && stored.ids === digest;
      const lacks = isExact ? undefined : await findLacks(tx, zoneId, startsAt, shown);
      const seen = { at, pages, count: ids.length, ids: digest, ...(lacks === undefined ? {} : { lacks }) };
      await writeLooks(tx, zoneId, new Map([[startsAt, { ...looks, search: nextLook(looks.search, seen) }]]));
    },
  };
}

async function findLacks(
  tx: Queryable,
  zoneId: number,
  startsAt: number,
  shown: ReadonlyMap<string, number>,
): Promise<LookLacks | undefined> {
  const stored = await readHourIds(tx, zoneId, startsAt);
  const lacking = new Map(stored.flatMap((event) => (shown.has(event.logId) ? [] : [[event.logId, event]])));
  if (lacking.size === 0) return undefined;
  const rules: Record<string, number> = {};
  for (const { ruleId } of lacking.values()) rules[ruleId] = (rules[ruleId] ?? 0) + 1;
  return {
    count: lacking.size,
    known: [...lacking.values()].filter(({ isResolved }) => isResolved).length,
    ids: [...lacking.keys()].slice(0, MAX_NAMED),
    // Above this number of rules the differences are not named, so they stay unexplained.
    rules: Object.keys(rules).length > MAX_RULES ? {} : rules,
  };
}

function toText(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace("T", " ");
}
