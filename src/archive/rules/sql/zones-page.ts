/** One page of the events of several zones, whose files lie beside each other in time. */
import { DAY_MS } from "#lib/units.ts";
import { type ArchivedEvent, EVENT_TEXTS, toArchivedEvent } from "#model/waf-event.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { type EventSource, selectEvents } from "./event-source.ts";
import { duck, type Piece, raw } from "./to-condition.ts";

type PagedPlan = Pick<SearchPlan, "from" | "to" | "clauses" | "pageSize">;

/** The columns of a file that say where a page is. To read the ids of all events would take several times as long. */
export const PLACE_COLUMNS = ["occurred_at", "zone_id"];

/** The events of [from, to), epoch ms, of which the page begins behind the newest `skip`. */
export interface PagePlace {
  readonly from: number;
  readonly to: number;
  readonly skip: number;
  /** The zones' days that have such events: the zone, and the number of the day since 1970. */
  readonly days: readonly (readonly [zoneId: number, day: number])[];
}

/** Returns the statement for the number of events and the place of the page that begins behind the newest `offset`. */
export function placePage(source: EventSource, plan: PagedPlan, offset: number): Piece {
  return duck`with events as materialized (${selectEvents(source, plan, PLACE_COLUMNS)}),
    page as (select occurred_at from events order by occurred_at desc limit ${plan.pageSize} offset ${offset}),
    ends as materialized (select min(occurred_at) as first, max(occurred_at) as last from page)
    select json_array((select count(*) from events), epoch_ms(first), epoch_ms(last), ${offset} -
      (select count(*) from events where occurred_at > last), (select list(distinct [zone_id, epoch_ms(occurred_at) // ${DAY_MS}])
        from events where occurred_at between first and last)) from ends`;
}

export function readPlace(rows: readonly string[]): {
  readonly total: number;
  readonly place: PagePlace | null;
} {
  const [total, first, last, skip, days] = JSON.parse(rows[0] ?? "[0, null]") as [
    number,
    number | null,
    number,
    number,
    [number, number][],
  ];
  return { total, place: first === null ? null : { from: first, to: last + 1, skip, days } };
}

export const PAGE_COLUMNS = ["occurred_at", "zone_id", ...EVENT_TEXTS];

/** An event with the position of its file, which is -1 for an open row, and its row there. */
interface PageEvent extends ArchivedEvent {
  readonly zoneId: number;
  readonly file: number;
  readonly row: number;
}

/** Returns the statement for the events of a page, newest first; those of one millisecond by log id and then by zone. */
export function fetchPage(source: EventSource, plan: PagedPlan, skip: number): Piece {
  const texts = raw(EVENT_TEXTS.join(", "));
  return duck`select json_array(file, row, zone_id, epoch_ms(occurred_at), ${texts})
    from (${selectEvents(source, plan, PAGE_COLUMNS, { hasPlaces: true })})
    order by occurred_at desc, log_id desc, zone_id limit ${plan.pageSize} offset ${skip}`;
}

export function readPage(rows: readonly string[]): PageEvent[] {
  return rows.map((text) => {
    const [file, row, zoneId, occurredAt, ...texts] = JSON.parse(text) as [
      number,
      number,
      number,
      number,
      ...string[],
    ];
    return { file, row, zoneId, ...toArchivedEvent(occurredAt, texts) };
  });
}
