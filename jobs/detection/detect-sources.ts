import { z } from "zod";
import type { Database } from "../../db/client.ts";
import { listKnownSources, toKnownSource } from "../../db/detection/known-sources.ts";
import {
  readFirstSeen,
  readMinuteTotals,
  readSourceEvents,
  SLICE_EVENTS,
  type StoredSourceEvent,
} from "../../db/detection/source-events.ts";
import {
  openSpike,
  readAttacks,
  readOpenSources,
  readRecentClosings,
  readSearchedThrough,
  type SpikeRow,
  updateSpike,
} from "../../db/detection/spikes.ts";
import { toAttackHours } from "../../src/detection/backtest/attack-hours.ts";
import type { SourceMode } from "../../src/detection/detection-settings.ts";
import { spanOfTick, type TickSpan } from "../../src/detection/plan-tick.ts";
import {
  type SourceEpisode,
  type SourceFinding,
  strongestOf,
} from "../../src/detection/sources/source-episode.ts";
import { toSourceAddress } from "../../src/detection/sources/source-event.ts";
import { COMPARED_MINUTES, collectSourceEvidence } from "../../src/detection/sources/source-evidence.ts";
import { SOURCE_KINDS, type SourceKind } from "../../src/detection/sources/source-kinds.ts";
import {
  createSourceWatch,
  type PastSourceEpisode,
  type SourceMemory,
  type SourceWatch,
} from "../../src/detection/sources/source-watch.ts";
import { toSourceEpisode, toSourceRow } from "../../src/detection/sources/stored-sources.ts";
import { createHourHistory, type HourHistory, putHour } from "../../src/detection/thresholds/hour-history.ts";
import { LONGEST_WINDOW, WINDOW_COUNT } from "../../src/detection/thresholds/windows.ts";
import { viewZone, type ZoneHour } from "../../src/detection/zone-view.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { toError } from "../../src/lib/errors.ts";
import type { Log } from "../../src/lib/log.ts";
import { MINUTE_MS } from "../../src/lib/units.ts";
import { createKnownSources, type KnownSource, type KnownSources } from "../../src/model/known-source.ts";
import { SOURCES_RULE } from "../../src/model/stored-sources.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";
import { type CountedHours, countSourceHours } from "./count-source-hours.ts";

const MINUTES_PER_DAY = 1_440;

export interface DetectSourcesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly zoneIds: readonly number[];
  /** Returns the configured mode, which may change while the service runs. */
  readonly sourceMode: () => SourceMode;
  /** Returns the known sources of the configuration file. The database holds others. */
  readonly knownSources: () => readonly KnownSource[];
  /** Called when a zone's sources fired, changed or became quiet. */
  readonly afterSpikes: () => unknown;
}

/** A zone's watch between two ticks. It can be made again from rows at any time. */
interface KeptWatch {
  readonly watch: SourceWatch;
  readonly known: KnownSources;
  /** Changes when the watch has to be made again. */
  readonly fingerprint: string;
  /** The next minute to read. */
  next: number;
  /** Events that the watch has taken, by minute. */
  readonly taken: Map<number, number>;
}

/**
 * Judges the source series of every zone: opens, updates and closes one spike per zone for all of them. Counts its own
 * closed hours first. A zone that fails does not stop the others, and no zone stops the detector of rules. Of two
 * concurrent ticks one opens the spike.
 */
export function createDetectSourcesJob(deps: DetectSourcesDeps): AnyJob {
  const kept = new Map<number, KeptWatch>();
  let isRunning = false;
  return defineJob({
    name: "detect-sources",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 300_000,
    async run(_payload, signal) {
      // Two ticks must not feed the same watches. The next tick judges what a skipped one has not.
      if (isRunning || deps.sourceMode() === "off") return;
      isRunning = true;
      try {
        const changed = await detectSources(deps, kept, signal);
        if (changed > 0) await deps.afterSpikes();
      } finally {
        isRunning = false;
      }
    },
  });
}

interface Tick {
  readonly isShadow: boolean;
  readonly span: TickSpan;
  readonly covered: ReadonlyMap<number, readonly ZoneHour[]>;
  readonly open: ReadonlyMap<number, SpikeRow>;
  readonly closings: ReadonlyMap<number, number>;
  readonly attacks: ReadonlyMap<number, Parameters<typeof toAttackHours>[0]>;
  readonly totals: ReadonlyMap<number, ReadonlyMap<number, number>>;
  readonly known: readonly KnownSource[];
}

async function detectSources(
  deps: DetectSourcesDeps,
  kept: Map<number, KeptWatch>,
  signal: AbortSignal,
): Promise<number> {
  const { db } = deps.database;
  const span = spanOfTick(deps.clock());
  const { oldestMs, nowMs, firstTested, firstMinute } = span;
  const isSources = ({ ruleId }: { ruleId: string }) => ruleId === SOURCES_RULE;
  const closings = await readRecentClosings(db, firstMinute * MINUTE_MS);
  const attacks = (await readAttacks(db, { afterMs: oldestMs })).filter(isSources);
  const tick: Tick = {
    isShadow: deps.sourceMode() === "shadow",
    span,
    covered: Map.groupBy(await readSearchedThrough(db, { afterMs: oldestMs, untilMs: nowMs }), toZone),
    open: new Map((await readOpenSources(db)).map((row) => [row.zoneId, row])),
    closings: new Map(closings.filter(isSources).map((one) => [one.zoneId, one.closedAtMs])),
    attacks: Map.groupBy(attacks, toZone),
    totals: await readMinuteTotals(db, firstTested),
    known: [...deps.knownSources(), ...(await listKnownSources(db)).map(toKnownSource)],
  };
  let changed = 0;
  let failure: Error | undefined;
  for (const zoneId of deps.zoneIds) {
    if (signal.aborted) break;
    try {
      if (await judgeZone(deps.database, zoneId, tick, kept)) changed += 1;
    } catch (thrown) {
      kept.delete(zoneId);
      failure = toError(thrown);
      deps.log.error({ err: failure, zoneId }, "sources of a zone not judged");
    }
  }
  if (failure !== undefined && changed === 0) throw failure;
  return changed;
}

const toZone = ({ zoneId }: { zoneId: number }) => zoneId;

/** Returns whether the zone's spike opened, changed or closed. */
async function judgeZone(
  database: Database,
  zoneId: number,
  tick: Tick,
  kept: Map<number, KeptWatch>,
): Promise<boolean> {
  const { span } = tick;
  const view = viewZone(tick.covered.get(zoneId) ?? [], span.nowMs);
  const through = testableThrough(span, view.isTestable);
  if (!view.isReady || through === null) return false;
  const attackHours = toAttackHours(tick.attacks.get(zoneId) ?? []);
  const nowHour = Math.floor((through - 1) / 60);
  const row = tick.open.get(zoneId);
  const known = createKnownSources(tick.known, { zoneId, nowMs: span.nowMs });
  const fingerprint = [nowHour, view.fingerprint, known.fingerprint, ...attackHours].join();
  const closedAt = Math.ceil((tick.closings.get(zoneId) ?? 0) / MINUTE_MS);
  const judged = row === undefined ? closedAt : Math.floor(row.judgedThrough.getTime() / MINUTE_MS);
  let one = kept.get(zoneId);
  // Another replica opened the spike, and has not judged the minutes that this watch took without the spike.
  const isAhead = row !== undefined && one !== undefined && one.next > judged;
  if (one?.fingerprint !== fingerprint || isAhead || hasLateEvents(one, tick.totals.get(zoneId))) {
    kept.delete(zoneId);
    const counted = await countSourceHours(database, zoneId, {
      nowHour,
      isUnknownHour: view.isUnknownHour,
      known,
    });
    if (!counted.isComplete) return false;
    const isCounted = new Set(counted.hours.map(({ hour }) => hour));
    const isUnknownHour = (hour: number) =>
      attackHours.has(hour) || view.isUnknownHour(hour) || !isCounted.has(hour);
    const next = span.firstTested - LONGEST_WINDOW + 1;
    const watch = createSourceWatch({ isUnknownHour }, toMemory(counted, next));
    one = { watch, known, fingerprint, next, taken: new Map() };
    kept.set(zoneId, one);
  }
  // The row is the truth: a replica that was faster may have judged minutes that are not judged again here.
  one.watch.resume(row === undefined ? null : toSourceEpisode(row));
  const judgeFrom = Math.max(span.firstTested, judged);
  const ended = await follow(database, zoneId, one, { through, judgeFrom });
  const episodes: { episode: SourceEpisode; closedAt: number | null }[] = ended.map((episode) => ({
    episode,
    closedAt: episode.closedAt,
  }));
  const running = one.watch.episode();
  if (running !== null) episodes.push({ episode: running, closedAt: null });
  let hasChanged = false;
  // The spike of the row is the first of them.
  for (const [index, each] of episodes.entries()) {
    const { known } = one;
    const storing = { isShadow: tick.isShadow, row: index === 0 ? row : undefined, known, through, ...each };
    hasChanged = (await storeEpisode(database, zoneId, storing)) || hasChanged;
  }
  return hasChanged;
}

/** Returns the end of the judgeable minutes of the tick that follow one another; null if there is none. */
function testableThrough({ firstTested, endMinute }: TickSpan, isTestable: (minute: number) => boolean) {
  let through: number | null = null;
  for (let minute = firstTested; minute < endMinute; minute += 1)
    if (isTestable(minute)) through = minute + 1;
  return through;
}

/** Returns whether more events of a judged minute are counted than the watch has taken. */
function hasLateEvents({ taken, next }: KeptWatch, totals: ReadonlyMap<number, number> = new Map()): boolean {
  return [...totals].some(([minute, total]) => minute < next && total > (taken.get(minute) ?? 0));
}

function toMemory({ hours, usual, firstMinute }: CountedHours, nextMinute: number): SourceMemory {
  const histories = SOURCE_KINDS.map((kind, place): [SourceKind, HourHistory] => {
    const history = createHourHistory();
    for (const { hour, peaks } of hours)
      putHour(history, hour, 0, peaks?.slice(place * WINDOW_COUNT, (place + 1) * WINDOW_COUNT) ?? []);
    history.firstHour = hours[0]?.hour ?? Math.floor((firstMinute ?? nextMinute) / 60);
    return [kind, history];
  });
  return {
    histories: Object.fromEntries(histories) as Record<SourceKind, HourHistory>,
    // The hours note the addresses, so that a minute that is read again changes nothing.
    usual: { note: () => undefined, usualOn: usual.usualOn },
    firstMinute,
    nextMinute,
  };
}

/** Takes the events up to the minute `through`, exclusive. Returns the episodes that ended. */
async function follow(
  { db }: Database,
  zoneId: number,
  one: KeptWatch,
  { through, judgeFrom }: { through: number; judgeFrom: number },
): Promise<PastSourceEpisode[]> {
  const ended: PastSourceEpisode[] = [];
  for await (const events of readSourceEvents(db, { zoneId, from: one.next, to: through })) {
    for (const event of events) {
      const { minute } = event;
      ended.push(...one.watch.closeUntil(minute, judgeFrom));
      if (!one.known.isKnown(event)) one.watch.take(event, minute);
      one.taken.set(minute, (one.taken.get(minute) ?? 0) + 1);
      // Of a flood only a part was read, so its total says nothing about late events.
      if (events.length >= SLICE_EVENTS) one.taken.set(minute, Number.POSITIVE_INFINITY);
    }
  }
  ended.push(...one.watch.closeUntil(through, judgeFrom));
  one.next = Math.max(one.next, through);
  for (const minute of one.taken.keys()) if (minute < through - LONGEST_WINDOW) one.taken.delete(minute);
  return ended;
}

interface ToStore {
  readonly isShadow: boolean;
  readonly row: SpikeRow | undefined;
  readonly known: KnownSources;
  readonly episode: SourceEpisode;
  readonly through: number;
  readonly closedAt: number | null;
}

async function storeEpisode(
  database: Database,
  zoneId: number,
  { isShadow, row, known, episode, through, closedAt }: ToStore,
) {
  const { db } = database;
  const times = { judgedThrough: closedAt ?? through, closedAt };
  const before = row === undefined ? null : toSourceEpisode(row);
  const strongest = strongestOf(episode);
  const isStronger = before === null || strongest.score > strongestOf(before).score;
  if (row?.sources != null && !isStronger) {
    return updateSpike(db, row.id, toSourceRow(episode, row.sources, times));
  }
  const found = collectSourceEvidence(strongest, {
    hour: await readAll(database, zoneId, through - LONGEST_WINDOW, through),
    yesterday: await readAll(
      database,
      zoneId,
      through - COMPARED_MINUTES - MINUTES_PER_DAY,
      through - MINUTES_PER_DAY,
    ),
    endMinute: through,
    isKnown: known.isKnown,
  });
  const isoOf = (minute: number) => new Date(minute * MINUTE_MS).toISOString();
  const evidence = {
    from: isoOf(through - strongest.windowMinutes),
    to: isoOf(through),
    total: found.events,
    sampled: found.events,
    firstEventAt: found.firstMinute === null ? null : isoOf(found.firstMinute),
    lastEventAt: found.lastMinute === null ? null : isoOf(found.lastMinute),
    top: { ...found.top, action: [] },
    sparkline: found.sparkline,
  };
  const seenBefore =
    before !== null && strongestOf(before).key === strongest.key ? row?.sources?.firstSeen : null;
  const firstSeen = seenBefore ?? (await findFirstSeen(database, zoneId, strongest, through));
  const stored = { ...toSourceRow(episode, { ...found, firstSeen }, times), evidence };
  return row === undefined
    ? (await openSpike(db, { zoneId, isShadow, ...stored })) !== null
    : updateSpike(db, row.id, stored);
}

/** The day before is enough: a source that comes at the same hour of every day was seen 24 hours ago. */
function findFirstSeen(
  { db }: Database,
  zoneId: number,
  { kind, key }: SourceFinding,
  through: number,
): Promise<number | null> {
  const span = { from: through - MINUTES_PER_DAY, to: through };
  return readFirstSeen(db, { zoneId, kind, key, ...span }, toSourceAddress);
}

async function readAll({ db }: Database, zoneId: number, from: number, to: number) {
  const all: StoredSourceEvent[] = [];
  for await (const events of readSourceEvents(db, { zoneId, from, to })) all.push(...events);
  return all;
}
