import {
  type EventPart,
  readEventsOfZones,
  readSourceEvents,
  type StoredSourceEvent,
} from "#db/detection/source-events.ts";
import { readSourceUsual } from "#db/detection/source-hours.ts";
import type { FiredMinute } from "#detection/rules/sources/judge-sources.ts";
import { ENOUGH_DAYS, USUAL_DAYS } from "#detection/rules/sources/usual-rules.ts";
import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import { inTurns } from "#lib/waiting.ts";
import { toUsualRules } from "./count-source-hours.ts";
import { judgeIncidents } from "./judge-incidents.ts";
import { closeUntil, judgeRunningMinute, type KeptWatch, takeEvents } from "./kept-watch.ts";
import { attempt, type Pass } from "./source-hours.ts";
import type { DueZone, SourceTick } from "./source-tick.ts";

/** About so many events are read with one statement, and at most so many of a zone. Larger zones are read by themselves. */
const EVENTS_PER_READ = 20_000;
const EVENTS_PER_ZONE = 5_000;

/** Feeds the watches of zones with the events of their new minutes, many zones per statement, and judges them. */
export async function judgeZones(pass: Pass, zones: readonly DueZone[], isNew = false): Promise<void> {
  const spans = zones.flatMap((zone): JudgedSpan[] => {
    const one = pass.kept.get(zone.zoneId);
    if (one === undefined) return [];
    const hourEnd = (Math.floor(one.next / 60) + 1) * 60;
    const to = isNew ? zone.through : Math.min(zone.through, hourEnd);
    if (to < zone.through) pass.isDone = false;
    return [{ zone, one, zoneId: zone.zoneId, from: one.next, to }];
  });
  await learnUsual(pass, spans);
  for (const batch of toReads(pass.tick, spans)) {
    const unread = batch.filter(({ from, to }) => from < to);
    const found =
      unread.length === 0 ? null : await readEventsOfZones(pass.deps.database, unread, EVENTS_PER_ZONE);
    for (const span of batch)
      await attempt(pass, [span.zone], () => judgeSpan(pass, span, found?.get(span.zoneId)));
  }
}

/** Divides spans so that each part has about as many events as one statement reads. */
function toReads({ totals, span: { endMinute } }: SourceTick, spans: readonly JudgedSpan[]): JudgedSpan[][] {
  const reads: JudgedSpan[][] = [];
  let left = 0;
  for (const span of spans) {
    const minutes = [...(totals.get(span.zoneId) ?? [])].filter(([minute]) => minute < endMinute);
    const perMinute = minutes.reduce((sum, [, total]) => sum + total, 0) / Math.max(minutes.length, 1);
    const events = Math.min(perMinute * (span.to - span.from), EVENTS_PER_ZONE) + 1;
    if (left < events) {
      reads.push([]);
      left = EVENTS_PER_READ;
    }
    reads.at(-1)?.push(span);
    left -= events;
  }
  return reads;
}

interface JudgedSpan {
  readonly zone: DueZone;
  readonly one: KeptWatch;
  readonly zoneId: number;
  readonly from: number;
  readonly to: number;
}

/** Judges one zone. `events` is null if they were too many to be read with those of others. */
async function judgeSpan(
  pass: Pass,
  span: JudgedSpan,
  events: readonly StoredSourceEvent[] | null = [],
): Promise<void> {
  const { zone, one, zoneId, from, to } = span;
  const { firstTested } = pass.tick.span;
  const judgeFrom = Math.max(firstTested, zone.judged);
  if (from < firstTested) one.judgedFrom = firstTested;
  const fired: FiredMinute[] = [];
  const take = ({ events, isCut }: EventPart) => fired.push(...takeEvents(one, events, { judgeFrom, isCut }));
  if (events !== null) for await (const part of inTurns(events)) take({ events: part, isCut: false });
  else for await (const part of readSourceEvents(pass.deps.database.db, { zoneId, from, to })) take(part);
  fired.push(...closeUntil(one, to, judgeFrom));
  if (one.watch.isRising() || zone.open.length > 0) pass.rising.add(zoneId);
  else pass.rising.delete(zoneId);
  if (await judgeIncidents(pass, zone, { fired, through: to })) pass.changed += 1;
}

/**
 * Judges the running minute of zones, all of whose other minutes are judged, by the events that are stored of it. Counts only
 * grow, so that this finds what the end of the minute finds, up to a minute earlier. A minute with very many events is judged
 * at its end only.
 */
export async function judgeRunning(pass: Pass, zones: readonly DueZone[]): Promise<void> {
  if (zones.length === 0) return;
  const { database } = pass.deps;
  const { endMinute: minute, nowMs } = pass.tick.span;
  const asked = zones.map(({ zoneId }) => ({ zoneId, from: minute, to: nowMs / MINUTE_MS }));
  const found = await readEventsOfZones(database, asked, EVENTS_PER_ZONE);
  for (const zone of zones)
    await attempt(pass, [zone], async () => {
      const one = pass.kept.get(zone.zoneId);
      const running =
        one === undefined ? null : await judgeRunningMinute(one, found.get(zone.zoneId) ?? [], minute);
      if (one?.watch.isRising()) pass.rising.add(zone.zoneId);
      if (running === null) return;
      if (await judgeIncidents(pass, zone, { fired: [], through: minute, running })) pass.changed += 1;
    });
}

/** Reads what is usual for the addresses of zones whose minutes are of another day than before. */
async function learnUsual({ deps }: Pass, spans: readonly JudgedSpan[]): Promise<void> {
  const changed = spans.filter(({ one, from, to }) => from < to && one.usualDay !== dayOf(to - 1));
  if (changed.length === 0) return;
  const span = {
    fromDay: Math.min(...changed.map(({ from }) => dayOf(from))) - USUAL_DAYS,
    toDay: Math.max(...changed.map(({ to }) => dayOf(to - 1))),
    atLeast: ENOUGH_DAYS,
  };
  const zoneIds = changed.map(({ zoneId }) => zoneId);
  const rows = await readSourceUsual(deps.database.db, zoneIds, span);
  const found = Map.groupBy(rows, ({ zoneId }) => zoneId);
  for (const { one, zoneId, to } of changed) {
    one.usual = toUsualRules(found.get(zoneId) ?? []);
    one.usualDay = dayOf(to - 1);
  }
}

function dayOf(minute: number): number {
  return Math.floor(minute / MINUTES_PER_DAY);
}
