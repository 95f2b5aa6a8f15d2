import { z } from "zod";
import { closeSources } from "#db/detection/spikes.ts";
import { noteRising } from "#db/proof/platform-health.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { inLanes } from "#lib/waiting.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import { countSourceHours, hasHoursLeft } from "./count-source-hours.ts";
import { judgeRunning, judgeZones } from "./judge-source-zones.ts";
import { applyPolicy, createKeptWatch, hasLateEvents, type KeptWatch } from "./kept-watch.ts";
import {
  attempt,
  type DetectSourcesDeps,
  learnChanges,
  type Pass,
  readVersions,
  storeEndedHours,
  toBatches,
  ZONES_PER_WARMING,
} from "./source-hours.ts";
import {
  type DueZone,
  firstToRead,
  type OldHours,
  planZone,
  readTick,
  type SourceTick,
} from "./source-tick.ts";

/** A pass takes up no further zone that is cold, and counts no further hour, after this time. */
const PASS_MS = 400;
/** Groups of cold zones that are taken up at once. */
const WARMED_AT_ONCE = 2;

/**
 * Judges the source series of every zone: opens, updates and closes incidents. Counts its own
 * closed hours first. A zone that fails does not stop the others, and no zone stops the detector of rules. Of two
 * concurrent ticks one opens the spike.
 */
export function createDetectSourcesJob(deps: DetectSourcesDeps): AnyJob {
  let state = createState();
  return defineJob({
    name: "detect-sources",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 300_000,
    async run(_payload, signal) {
      // Two ticks must not feed the same watches. The next tick judges what a skipped one has not.
      if (state.isRunning) return LEASE_TAKEN;
      if (deps.sourceMode() === "off") {
        // An alert that was open when the series were switched off would stay open for ever.
        if ((await closeSources(deps.database.db, deps.clock())) > 0) await deps.afterSpikes();
        return "detection.sources is off";
      }
      const own = state;
      const isDone = own.doneMinute === Math.floor(deps.clock() / MINUTE_MS);
      own.isRunning = true;
      // A connection that the network has dropped may never answer. The next tick does not wait for it.
      const replaceState = () => {
        state = createState();
      };
      signal.addEventListener("abort", replaceState, { once: true });
      try {
        const run: Run = { tried: new Set(), counted: new Map(), signal, tick: own.tick };
        let isRead = false;
        for (let isJudged = isDone; !isJudged && !signal.aborted; ) {
          const passed = await detectSources(deps, own, run);
          if (passed.changed > 0) await deps.afterSpikes();
          isJudged = passed.isDone;
          // The rows of incidents are read again if the minutes before have changed them.
          isRead = passed.changed === 0;
        }
        if (signal.aborted) return undefined;
        const before = new Set(own.rising);
        const judged = await judgeNews(deps, own, run, isRead);
        own.tick = run.tick;
        const isNew = [...own.rising].some((zoneId) => !before.has(zoneId));
        if (!isDone || isNew) await noteRising(deps.database.db, [...own.rising], deps.clock());
        if (judged.changed > 0) await deps.afterSpikes();
        if (isDone && judged.zones === 0) return "no zone has new events in this minute";
      } finally {
        signal.removeEventListener("abort", replaceState);
        own.isRunning = false;
      }
      return undefined;
    },
  });
}

type State = ReturnType<typeof createState>;

function createState() {
  return {
    isRunning: false,
    kept: new Map<number, KeptWatch>(),
    oldHours: new Map() as OldHours,
    /**
     * Changes with every erasure, after which no watch may know an address any more, and with every promotion of a standby,
     * which may lack what was judged.
     */
    erasures: null as string | null,
    /** The end of the minutes that every zone was judged up to. A tick before the next minute judges the running one only. */
    doneMinute: null as number | null,
    /** The minute that ran when it was last judged, and the events that it then had in each zone. */
    running: { minute: 0, totals: new Map<number, number>() },
    /** Zones in which something comes near its line, or an incident is open. */
    rising: new Set<number>(),
    tick: null as SourceTick | null,
  };
}

/** One run of the job: as many passes as it takes. */
interface Run {
  /** Zones that are done in this run, whether or not they have a watch. */
  readonly tried: Set<number>;
  /** The hours that were counted, by zone. */
  readonly counted: Map<number, number>;
  readonly signal: AbortSignal;
  /** The rows that the last pass read; null before the first. */
  tick: SourceTick | null;
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
  const { tried } = run;
  const tick = await readTick(deps, state.oldHours, run.tick);
  run.tick = tick;
  const { kept } = state;
  if (state.erasures !== tick.erasures) kept.clear();
  state.erasures = tick.erasures;
  const pass = createPass(deps, state, run, tick);
  const { isOver } = pass.budget;
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
  await attempt(pass, warm, async (zones) => {
    const watches = zones.flatMap(({ zoneId }) => kept.get(zoneId) ?? []);
    const { settingsOf = () => "" } = deps;
    for (const zoneId of await storeEndedHours(deps.database, watches, settingsOf)) pass.stale.add(zoneId);
  });
  // Counting hours is not urgent: the last pass of a tick does it.
  if (pass.isDone) await learnChanges(pass, warm);
  // While Postgres reads the events of some zones, those of others are counted.
  await inLanes([...toBatches(cold, ZONES_PER_WARMING).entries()], WARMED_AT_ONCE, async ([index, zones]) => {
    if (index >= WARMED_AT_ONCE && isOver()) pass.isDone = false;
    else await attempt(pass, zones, (some) => warmZones(pass, some));
  });
  const { endMinute } = tick.span;
  state.doneMinute = deps.zoneIds.every((zoneId) => kept.get(zoneId)?.next === endMinute) ? endMinute : null;
  if (pass.failure !== null && pass.changed === 0 && pass.isDone) throw pass.failure;
  return pass;
}

function createPass(deps: DetectSourcesDeps, state: State, run: Run, tick: SourceTick): Pass {
  const { tried, counted, signal } = run;
  const startedMs = performance.now();
  const isOver = () => signal.aborted || performance.now() - startedMs > PASS_MS;
  const { kept, rising } = state;
  const budget = { isOver, counted, hasCounted: false };
  const stale = new Set(tick.stale);
  return { deps, tick, kept, rising, budget, tried, stale, signal, changed: 0, isDone: true, failure: null };
}

/**
 * Judges the running minute of the zones that have had new events in it since the last judgement, and of those in which something
 * rises. Returns how many these are, and how many have changed.
 */
async function judgeNews(
  deps: DetectSourcesDeps,
  state: State,
  run: Run,
  isRead: boolean,
): Promise<{ readonly zones: number; readonly changed: number }> {
  const tick = isRead && run.tick !== null ? run.tick : await readTick(deps, state.oldHours, run.tick);
  run.tick = tick;
  const { endMinute } = tick.span;
  if (state.running.minute !== endMinute) state.running = { minute: endMinute, totals: new Map() };
  const { totals } = state.running;
  const isUpToDate = ({ zoneId, through }: DueZone) =>
    through === endMinute && state.kept.get(zoneId)?.next === endMinute;
  const zones = deps.zoneIds
    .filter(
      (zoneId) => state.rising.has(zoneId) || (tick.running.get(zoneId) ?? 0) > (totals.get(zoneId) ?? 0),
    )
    .flatMap((zoneId) => planZone(tick, zoneId))
    .filter(isUpToDate);
  const pass = createPass(deps, state, run, tick);
  await judgeRunning(pass, zones);
  for (const { zoneId } of zones) totals.set(zoneId, tick.running.get(zoneId) ?? 0);
  if (pass.failure !== null) throw pass.failure;
  return { zones: zones.length, changed: pass.changed };
}

function isUsable(one: KeptWatch, { zoneId, open, judged, known }: DueZone, tick: SourceTick): boolean {
  if (one.known.fingerprint !== known.fingerprint || one.next < firstToRead(tick)) return false;
  // Another replica opened an incident, and has not judged the minutes that this watch took without it.
  if (open.length > 0 && one.next > judged) return false;
  return !hasLateEvents(one, tick.totals.get(zoneId));
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
      createKeptWatch(zoneId, { known, policy, version, next: firstToRead(pass.tick) }, hours),
    );
    return true;
  });
  await judgeZones(pass, made, true);
}
