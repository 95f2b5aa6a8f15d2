import { EventLogEntry } from "#adapters/edge/contract/event-log-list.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import { packLogIdHashes } from "#model/log-id-hash.ts";
import { hashLogId } from "#stages/coverage/id-digest.ts";
import { SETTLE_MS } from "#stages/coverage/settle.ts";
import { countEvents } from "./count-events.ts";
import { hashPage } from "./hash-page.ts";
import { cutPage, type OpenedPage, openPage } from "./open-page.ts";
import { packRecords } from "./packed-records.ts";
import { preparePage } from "./prepare-page.ts";
import { type AcceptedTimes, OUTSIDE_DAY } from "./read-entries.ts";
import { toListEvent } from "./to-list-event.ts";
import { toPlainListEvent } from "./to-plain-list-event.ts";

export interface ListPageSource {
  readonly zoneId: number;
  /** The UTC day of the request, `yyyy-mm-dd`. */
  readonly day: string;
  readonly accepted: AcceptedTimes;
}

/**
 * Converts a page of the date-paged list from its bytes to everything that is stored of it. Does all the work that
 * needs no other page.
 */
export function digestListPage(body: Buffer, source: ListPageSource) {
  const cut = cutPage(body, "logs");
  if (cut !== null) {
    try {
      return digestOpened(body, cut, source);
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError)) throw thrown;
    }
  }
  return digestOpened(body, openPage(body, "logs"), source);
}

function digestOpened(body: Buffer, page: OpenedPage, { day, accepted }: ListPageSource) {
  const dayStart = Date.parse(day);
  const prepared = preparePage(page, {
    route: "list",
    toPlainEvent: toPlainListEvent,
    schema: EventLogEntry,
    toEvent: toListEvent,
    day,
    accepted: { ...accepted, list: { from: dayStart - SETTLE_MS, to: dayStart + DAY_MS + SETTLE_MS } },
  });
  const { events, records, quarantined, firstAt, lastAt } = prepared;
  return {
    envelope: page.envelope,
    entries: page.records.length,
    hash: hashPage(page.records, body),
    events,
    counts: countEvents(events),
    days: listDays(events),
    records: packRecords(body, records, events),
    idHashes: packLogIdHashes(events.map(({ logId }) => hashLogId(logId))),
    /**
     * Entries just outside the day, which may be correct: a list may be divided by the time at which an event
     * arrived.
     */
    nearDay: events.flatMap(({ occurredAt, logId }) =>
      occurredAt < dayStart || occurredAt >= dayStart + DAY_MS ? [{ occurredAt, logId }] : [],
    ),
    /** Number of entries far outside the day, which were quarantined. */
    outsideDay: quarantined.filter(({ reason }) => reason === OUTSIDE_DAY).length,
    quarantined,
    firstAt,
    lastAt,
  };
}

/** Returns the UTC days of events, `yyyy-mm-dd`. */
export function listDays(events: readonly { readonly occurredAt: number }[]): string[] {
  const days = new Set(events.map(({ occurredAt }) => startOfDay(occurredAt)));
  return [...days].map(toDay);
}
