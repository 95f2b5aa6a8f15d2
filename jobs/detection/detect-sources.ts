import { z } from "zod";
import type { Database } from "../../db/client.ts";
import { listKnownSources, toKnownSource } from "../../db/detection/known-sources.ts";
import {
  type CountedSourceEvent,
  readEventsOfZones,
  readMinuteTotals,
  readSourceEvents,
  SLICE_EVENTS,
} from "../../db/detection/source-events.ts";
import { readHourVersions, readSourceUsual, readStaleZones } from "../../db/detection/source-hours.ts";
import {
  closeSources,
  readAttacks,
  readOpenSources,
  readRecentClosings,
  readSearchedThrough,
  type SpikeRow,
} from "../../db/detection/spikes.ts";
import { readErasureState } from "../../db/privacy/erasures.ts";
import { toAttackHours } from "../../src/detection/backtest/attack-hours.ts";
import type { SourceMode } from "../../src/detection/detection-settings.ts";
import { spanOfTick, type TickSpan } from "../../src/detection/plan-tick.ts";
import type { PastSourceEpisode } from "../../src/detection/sources/source-watch.ts";
import { toSourceEpisode } from "../../src/detection/sources/stored-sources.ts";
import { ENOUGH_DAYS, USUAL_DAYS } from "../../src/detection/sources/usual-rules.ts";
import { LONGEST_WINDOW } from "../../src/detection/thresholds/windows.ts";
import { viewZone, type ZoneHour } from "../../src/detection/zone-view.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { toError } from "../../src/lib/errors.ts";
import type { Log } from "../../src/lib/log.ts";
import { MINUTE_MS } from "../../src/lib/units.ts";
import { createKnownSources, type KnownSource, type KnownSources } from "../../src/model/known-source.ts";
import { SOURCES_RULE } from "../../src/model/stored-sources.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";
import {
  type CountBudget,
  countSourceHours,
  firstHourOf,
  type HourPolicy,
  hasHoursLeft,
  toUsualRules,
} from "./count-source-hours.ts";
import {
  applyPolicy,
  closeUntil,
  createKeptWatch,
  hasLateEvents,
  isLacking,
  type KeptWatch,
  learnHours,
  takeEvents,
} from "./kept-watch.ts";
import { storeEndedHours } from "./store-ended-hours.ts";
import { storeSourceEpisodes } from "./store-source-episodes.ts";

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

/** A pass takes up no further zone that is cold, and counts no further hour, after this time. */
const PASS_MS = 400;
/** Zones whose events are read with one statement, and the most events of each. Others are read by themselves. */
const ZONES_PER_READ = 100;
const EVENTS_PER_ZONE = 1_000;
/** Zones whose watches are made together. */
const ZONES_PER_WARMING = 50;

/**
 * Judges the source series of every zone: opens, updates and closes one spike per zone for all of them. Counts its own
 * closed hours first. A zone that fails does not stop the others, and no zone stops the detector of rules. Of two
 * concurrent ticks one opens the spike.
 */
export function createDetectSourcesJob(deps: DetectSourcesDeps): AnyJob {
  const state: State = { kept: new Map(), erasures: null, doneMinute: null };
  let isRunning = false;
  return defineJob({
    name: "detect-sources",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 300_000,
    async run(_payload, signal) {
      // Two ticks must not feed the same watches. The next tick judges what a skipped one has not.
      if (isRunning) return;
      if (deps.sourceMode() === "off") {
        // An alert that was open when the series were switched off would stay open for ever.
        if ((await closeSources(deps.database.db, deps.clock())) > 0) await deps.afterSpikes();
        return;
      }
      if (state.doneMinute === Math.floor(deps.clock() / MINUTE_MS)) return;
      isRunning = true;
      try {
        const run: Run = { tried: new Set(), counted: new Map(), signal, tick: null };
        for (let isDone = false; !isDone && !signal.aborted; ) {
          const passed = await detectSources(deps, state, run);
          if (passed.changed > 0) await deps.afterSpikes();
          isDone = passed.isDone;
        }
      } finally {
        isRunning = false;
      }
    },
  });
}

interface State {
  readonly kept: Map<number, KeptWatch>;
  /** Changes with every erasure, after which no watch may know an address any more. */
  erasures: string | null;
  /** The end of the minutes that every zone was judged up to. A tick that comes before the next minute has no work. */
  doneMinute: number | null;
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

/** One run of the job: as many passes as it takes. */
interface Run {
  /** Zones that are done in this run, whether or not they have a watch. */
  readonly tried: Set<number>;
  /** The hours that were counted, by zone. */
  readonly counted: Map<number, number>;
  readonly signal: AbortSignal;
  /** The rows that the last pass read; null before the first. */
  tick: Tick | null;
}

interface Pass {
  readonly deps: DetectSourcesDeps;
  readonly tick: Tick;
  readonly kept: Map<number, KeptWatch>;
  readonly budget: CountBudget;
  readonly tried: Set<number>;
  changed: number;
  /** False if there is work left for another pass. */
  isDone: boolean;
  failure: Error | null;
}

/** A zone with minutes to judge. */
interface DueZone {
  readonly zoneId: number;
  readonly through: number;
  readonly nowHour: number;
  /** Minutes before this were judged. */
  readonly judged: number;
  readonly row: SpikeRow | undefined;
  readonly known: KnownSources;
  readonly policy: HourPolicy;
}

/**
 * Judges the zones whose watches are kept, and then makes watches for as many others as the time allows. A pass never
 * takes a watch beyond the end of an hour, so that the hour is stored before the next one is judged.
 */
async function detectSources(
  deps: DetectSourcesDeps,
  state: State,
  run: Run,
): Promise<{ changed: number; isDone: boolean }> {
  const { tried, counted, signal } = run;
  const tick = await readTick(deps, run.tick);
  run.tick = tick;
  const erasures = await readErasureState(deps.database.db);
  const { kept } = state;
  if (state.erasures !== erasures) kept.clear();
  state.erasures = erasures;
  const startedMs = performance.now();
  const isOver = () => signal.aborted || performance.now() - startedMs > PASS_MS;
  const budget = { isOver, counted, hasCounted: false };
  const pass: Pass = { deps, tick, kept, budget, tried, changed: 0, isDone: true, failure: null };
  const due = deps.zoneIds.flatMap((zoneId) => planZone(tick, zoneId));
  const [warm, cold] = [[] as DueZone[], [] as DueZone[]];
  for (const zone of due) {
    const one = kept.get(zone.zoneId);
    if (one !== undefined && isUsable(one, zone, tick)) {
      applyPolicy(one, zone.policy);
      warm.push(zone);
    } else {
      kept.delete(zone.zoneId);
      if (!tried.has(zone.zoneId)) cold.push(zone);
    }
  }
  await judgeZones(pass, warm);
  await attempt(pass, warm, (zones) =>
    storeEndedHours(
      deps.database,
      zones.flatMap(({ zoneId }) => kept.get(zoneId) ?? []),
    ),
  );
  // Counting hours is not urgent: the last pass of a tick does it.
  if (pass.isDone) await learnChanges(pass, warm);
  for (const [index, zones] of toBatches(cold, ZONES_PER_WARMING).entries()) {
    if (index > 0 && isOver()) {
      pass.isDone = false;
      break;
    }
    await attempt(pass, zones, (some) => warmZones(pass, some));
  }
  const { endMinute } = tick.span;
  state.doneMinute = deps.zoneIds.every((zoneId) => kept.get(zoneId)?.next === endMinute) ? endMinute : null;
  if (pass.failure !== null && pass.changed === 0 && pass.isDone) throw pass.failure;
  return pass;
}

/** Reads what a pass needs. Of the passes of one minute, the first reads what is the same for all. */
async function readTick(deps: DetectSourcesDeps, before: Tick | null): Promise<Tick> {
  const { db } = deps.database;
  const span = spanOfTick(deps.clock());
  const { oldestMs, nowMs, firstTested, firstMinute } = span;
  const isSources = ({ ruleId }: { ruleId: string }) => ruleId === SOURCES_RULE;
  const closings = await readRecentClosings(db, firstMinute * MINUTE_MS);
  const open = new Map((await readOpenSources(db)).map((row) => [row.zoneId, row]));
  const recent = new Map(closings.filter(isSources).map((one) => [one.zoneId, one.closedAtMs]));
  if (before?.span.endMinute === span.endMinute) return { ...before, open, closings: recent };
  const attacks = (await readAttacks(db, { afterMs: oldestMs })).filter(isSources);
  return {
    isShadow: deps.sourceMode() === "shadow",
    span,
    covered: Map.groupBy(await readSearchedThrough(db, { afterMs: oldestMs, untilMs: nowMs }), toZone),
    open,
    closings: recent,
    attacks: Map.groupBy(attacks, toZone),
    totals: await readMinuteTotals(db, firstTested),
    known: [...deps.knownSources(), ...(await listKnownSources(db)).map(toKnownSource)],
  };
}

const toZone = ({ zoneId }: { zoneId: number }) => zoneId;

function planZone(tick: Tick, zoneId: number): DueZone[] {
  const { span } = tick;
  const view = viewZone(tick.covered.get(zoneId) ?? [], span.nowMs);
  const through = testableThrough(span, view.isTestable);
  if (!view.isReady || through === null) return [];
  const attackHours = toAttackHours(tick.attacks.get(zoneId) ?? []);
  const row = tick.open.get(zoneId);
  const closedAt = Math.ceil((tick.closings.get(zoneId) ?? 0) / MINUTE_MS);
  return [
    {
      zoneId,
      through,
      nowHour: Math.floor((through - 1) / 60),
      judged: row === undefined ? closedAt : Math.floor(row.judgedThrough.getTime() / MINUTE_MS),
      row,
      known: createKnownSources(tick.known, { zoneId, nowMs: span.nowMs }),
      policy: {
        isUnknownHour: view.isUnknownHour,
        attackHours,
        fingerprint: [view.fingerprint, ...attackHours].join(),
      },
    },
  ];
}

/** Returns the end of the judgeable minutes of the tick that follow one another; null if there is none. */
function testableThrough({ firstTested, endMinute }: TickSpan, isTestable: (minute: number) => boolean) {
  let through: number | null = null;
  for (let minute = firstTested; minute < endMinute; minute += 1)
    if (isTestable(minute)) through = minute + 1;
  return through;
}

function isUsable(one: KeptWatch, { zoneId, row, judged, known }: DueZone, tick: Tick): boolean {
  if (one.known.fingerprint !== known.fingerprint || one.next < firstToRead(tick)) return false;
  // Another replica opened the spike, and has not judged the minutes that this watch took without the spike.
  if (row !== undefined && one.next > judged) return false;
  return !hasLateEvents(one, tick.totals.get(zoneId));
}

/** The first minute that a new watch reads. */
function firstToRead({ span }: Tick): number {
  return span.firstTested - LONGEST_WINDOW + 1;
}

/** Runs a step for zones. If it fails for one of them, that zone loses its watch, and the others are not stopped. */
async function attempt(
  pass: Pass,
  zones: readonly DueZone[],
  run: (zones: readonly DueZone[]) => Promise<unknown>,
): Promise<void> {
  try {
    await run(zones);
  } catch (thrown) {
    for (const { zoneId } of zones) pass.kept.delete(zoneId);
    if (zones.length === 1) {
      pass.tried.add(zones[0]?.zoneId ?? 0);
      pass.failure = toError(thrown);
      pass.deps.log.error({ err: pass.failure, zoneId: zones[0]?.zoneId }, "sources of a zone not judged");
    } else for (const zone of zones) await attempt(pass, [zone], run);
  }
}

/** Feeds the watches of zones with the events of their new minutes, many zones per statement, and judges them. */
async function judgeZones(pass: Pass, zones: readonly DueZone[], isNew = false): Promise<void> {
  const spans = zones.flatMap((zone): JudgedSpan[] => {
    const one = pass.kept.get(zone.zoneId);
    if (one === undefined) return [];
    const hourEnd = (Math.floor(one.next / 60) + 1) * 60;
    const to = isNew ? zone.through : Math.min(zone.through, hourEnd);
    if (to < zone.through) pass.isDone = false;
    return [{ zone, one, zoneId: zone.zoneId, from: one.next, to }];
  });
  await learnUsual(pass, spans);
  for (const batch of toBatches(spans, ZONES_PER_READ)) {
    const unread = batch.filter(({ from, to }) => from < to);
    const found =
      unread.length === 0 ? null : await readEventsOfZones(pass.deps.database.db, unread, EVENTS_PER_ZONE);
    for (const span of batch)
      await attempt(pass, [span.zone], () => judgeSpan(pass, span, found?.get(span.zoneId)));
  }
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
  events: readonly CountedSourceEvent[] | null = [],
): Promise<void> {
  const { zone, one, zoneId, from, to } = span;
  const judgeFrom = Math.max(pass.tick.span.firstTested, zone.judged);
  // The row is the truth: a replica that was faster may have judged minutes that are not judged again here.
  one.watch.resume(zone.row === undefined ? null : toSourceEpisode(zone.row));
  const ended: PastSourceEpisode[] = [];
  if (events !== null) ended.push(...takeEvents(one, events, { judgeFrom, isCut: false }));
  else
    for await (const slice of readSourceEvents(pass.deps.database.db, { zoneId, from, to }))
      ended.push(...takeEvents(one, slice, { judgeFrom, isCut: slice.length >= SLICE_EVENTS }));
  ended.push(...closeUntil(one, to, judgeFrom));
  const { isShadow } = pass.tick;
  const judged = {
    isShadow,
    row: zone.row,
    known: one.known,
    through: to,
    ended,
    running: one.watch.episode(),
  };
  if (await storeSourceEpisodes(pass.deps.database, zoneId, judged)) pass.changed += 1;
}

function toBatches<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
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
  const rows = await readSourceUsual(deps.database.db, changed.map(toZone), span);
  const found = Map.groupBy(rows, toZone);
  for (const { one, zoneId, to } of changed) {
    one.usual = toUsualRules(found.get(zoneId) ?? []);
    one.usualDay = dayOf(to - 1);
  }
}

function dayOf(minute: number): number {
  return Math.floor(minute / MINUTES_PER_DAY);
}

/**
 * Counts hours from their events that no watch has counted or that got late events, and gives changed hours to the
 * watches: once an hour also those that another replica has counted.
 */
async function learnChanges(pass: Pass, zones: readonly DueZone[]): Promise<void> {
  const { db } = pass.deps.database;
  const nowHour = Math.floor(pass.tick.span.endMinute / 60);
  const stale = new Set(await readStaleZones(db, firstHourOf(nowHour)));
  const isOld = ({ zoneId }: DueZone) => (pass.kept.get(zoneId)?.version.readIn ?? nowHour) < nowHour;
  const versions = await readVersions(pass, zones.filter(isOld), nowHour);
  const changed = zones.filter(({ zoneId }) => {
    const one = pass.kept.get(zoneId);
    if (one === undefined) return false;
    const before = one.version;
    one.version = versions.get(zoneId) ?? before;
    return one.version.text !== before.text || stale.has(zoneId) || isLacking(one);
  });
  for (const [index, batch] of toBatches(changed, ZONES_PER_WARMING).entries()) {
    // The next tick counts the others.
    if (index > 0 && pass.budget.isOver()) break;
    await attempt(pass, batch, async (some) => {
      const counted = await countSourceHours(pass.deps.database, some, pass.budget);
      for (const [zoneId, hours] of counted) {
        const one = pass.kept.get(zoneId);
        if (one === undefined) continue;
        if ((hours.firstMinute ?? Number.POSITIVE_INFINITY) >= (one.firstMinute ?? 0)) learnHours(one, hours);
        else {
          // Minutes that were not judged, because the zone seemed to be in its first day, are judged now.
          pass.kept.delete(zoneId);
          pass.isDone = false;
        }
      }
    });
  }
}

/** Reads the versions of the hours of zones. The two newest hours change no threshold and are left out. */
async function readVersions({ deps }: Pass, zones: readonly DueZone[], nowHour: number) {
  if (zones.length === 0) return new Map<number, KeptWatch["version"]>();
  const span = { fromHour: firstHourOf(nowHour), toHour: nowHour - 2 };
  const found = await readHourVersions(deps.database.db, zones.map(toZone), span);
  return new Map(zones.map(({ zoneId }) => [zoneId, { text: found.get(zoneId) ?? "", readIn: nowHour }]));
}

/** Makes the watches of zones whose hours are counted, and judges them. */
async function warmZones(pass: Pass, zones: readonly DueZone[]): Promise<void> {
  const nowHour = Math.floor(pass.tick.span.endMinute / 60);
  const versions = await readVersions(pass, zones, nowHour);
  const counted = await countSourceHours(pass.deps.database, zones, pass.budget);
  const made = zones.filter((zone) => {
    const { zoneId, known, policy } = zone;
    const hours = counted.get(zoneId);
    // The newest hour may be counted later: thresholds leave it out.
    const isCounted = hours !== undefined && hours.missing.every((hour) => hour === zone.nowHour - 1);
    if (isCounted || !hasHoursLeft(pass.budget, zoneId)) pass.tried.add(zoneId);
    else pass.isDone = false;
    if (!isCounted) return false;
    const version = versions.get(zoneId) ?? { text: "", readIn: nowHour };
    pass.kept.set(
      zoneId,
      createKeptWatch(zoneId, { hours, known, policy, version, next: firstToRead(pass.tick) }),
    );
    return true;
  });
  await judgeZones(pass, made, true);
}
