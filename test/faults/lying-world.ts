import { onTestFinished } from "vitest";
import { readCoveredHours } from "#db/proof/covered-hours.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import { DIMENSIONS } from "#platform/contract/event-logs.ts";
import { type CoverageState, coverageState, TRANSITIONS } from "#proof/rules/hour-status.ts";
import { oracle } from "../emulator/support.ts";
import type { Dimension } from "../support/liar/lie.ts";
import { type LyingPlatform, startLyingPlatform } from "../support/liar/lying-platform.ts";
import { isConcerned } from "./concerned-jobs.ts";
import { type FaultyWorld, type FaultyWorldOptions, openFaultyWorld } from "./faulty-world.ts";
import { findBreaches, readShown, type ShownEvent } from "./invariants.ts";
import { ZONE } from "./replica.ts";

type Testimony = LyingPlatform["witness"]["testimonies"] extends ReadonlyMap<string, infer One> ? One : never;

const SETTLE_MS = 15 * MINUTE_MS;
/** Time after the end of the lies: enough for two looks at an hour without events, and for every repair. */
export const CALM_MS = 3 * HOUR_MS;
export const ROUND_MS = 16 * MINUTE_MS;

export interface LyingWorld extends FaultyWorld {
  readonly liar: LyingPlatform;
  /**
   * Runs every concerned job once, a second apart, then advances the rest of the time. Throws after any job if an
   * hour is sealed although it lacks an event, or if a promise of `invariants.ts` is broken.
   */
  readonly round: (lastsMs: number) => Promise<void>;
  /** Runs as many rounds as the time has room for. */
  readonly pass: (lastsMs: number, roundMs: number) => Promise<void>;
  readonly hours: () => Promise<LyingHour[]>;
  /** Returns stored events of sealed hours that lack dimensions which only the search shows. */
  readonly findUnresolvedSeals: () => Promise<string[]>;
  /**
   * Ends the lies and runs rounds until every hour that a lie could reach is repaired, for at most `CALM_MS`. Returns
   * what is still wrong then, except in hours that expired too soon, if only because a lie forgot them. A phantom may
   * stay stored. A false value and an event of another zone may not.
   */
  readonly endLies: () => Promise<string[]>;
}

interface LyingHour {
  readonly at: number;
  readonly state: "open" | "sealed" | "gap";
  readonly reason: string | null;
  /** Null if the hour was never reopened. */
  readonly reopenedAt: number | null;
  readonly stored: number;
}

/** Opens a service whose platform can lie, and an oracle that knows what the platform has shown truthfully. */
export async function openLyingWorld(options: FaultyWorldOptions = {}): Promise<LyingWorld> {
  const world = await openFaultyWorld({ historyHours: 8, eventsPerSecond: 0.012, lateShare: 0, ...options });
  const { emulator, database } = world;
  const liar = await startLyingPlatform({ url: emulator.url, now: () => emulator.now(), isWitnessed: true });
  onTestFinished(() => liar.close());
  const replica = world.openReplica({ platformUrl: liar.url });
  let roundBeganAt = emulator.now();

  async function readHours(): Promise<LyingHour[]> {
    const { rows } = await database.pool.query<LyingHour>(
      `select (extract(epoch from starts_at) * 1000)::float8 as at, state, gap_reason as reason, stored_count as stored,
         (extract(epoch from reopened_at) * 1000)::float8 as "reopenedAt"
       from coverage_windows where zone_id = $1 order by starts_at`,
      [ZONE],
    );
    return rows;
  }

  /** By id, the events that the last reading found stored. */
  let stored: Awaited<ReturnType<typeof readIds>> = new Map();

  /**
   * Returns the false seals. `measuredBefore`: a metric does not name the hour, so the jobs have one whole round to
   * find it. The stored events are read again only if a sealed hour seems to lack one; that no event is lost after it
   * was stored, every round checks at its end.
   */
  async function findFalseSeals(hours: readonly LyingHour[], measuredBefore: number): Promise<string[]> {
    const sealed = new Set(hours.flatMap(({ at, state }) => (state === "sealed" ? [at] : [])));
    const findLacking = () =>
      [...liar.witness.testimonies].filter(([id, testimony]) => {
        if (stored.has(id) || !sealed.has(hourOf(testimony.timestamp))) return false;
        // A change of the counts gives an event away only as long as a search finds the event.
        const isFindable = () => !liar.isHidden(ZONE, { logId: id, timestamp: testimony.timestamp });
        return isKnownToLack(testimony, measuredBefore) || (testimony.givenAwayAt !== null && isFindable());
      });
    if (findLacking().length > 0) stored = await readIds(database);
    const lacking = findLacking();
    const byHour = Map.groupBy(lacking, ([, { timestamp }]) => hourOf(timestamp));
    return [...byHour].map(([hour, [first, ...others]]) => {
      return `${iso(hour)} is sealed and lacks ${others.length + 1} events, such as ${JSON.stringify(first)}`;
    });
  }

  const states = new Map<number, CoverageState>();

  /** Expects that the model allows every change of an hour's state since the last check. */
  function expectTransitions(after: string, hours: readonly LyingHour[]): void {
    for (const { at, ...hour } of hours) {
      const [before, now] = [states.get(at) ?? "open", coverageState(hour)];
      states.set(at, now);
      if (before !== now && TRANSITIONS[before][now] === undefined)
        throw new Error(`after ${after}: ${iso(at)} went from ${before} to ${now}, which the model forbids`);
    }
  }

  async function expectHonestSeals(after: string): Promise<void> {
    const hours = await readHours();
    expectTransitions(after, hours);
    const wrong = await findFalseSeals(hours, roundBeganAt);
    if (wrong.length > 0)
      throw new Error(
        `after ${after} at ${iso(emulator.now())}: ${wrong.length} false seals\n${wrong.join("\n")}`,
      );
  }

  async function round(lastsMs: number): Promise<void> {
    const endsAt = emulator.now() + lastsMs;
    const beganAt = emulator.now();
    for (const job of replica.jobNames.filter(isConcerned)) {
      // A job that fails because of a lie has proven nothing.
      await replica.run(job).catch(() => undefined);
      await expectHonestSeals(job);
      emulator.advance(SECOND_MS);
    }
    const { falseTimes, phantomIds, testimonies } = liar.witness;
    const isKnown = ({ logId }: ShownEvent) => {
      const testimony = testimonies.get(logId);
      return testimony !== undefined && isKnownToLack(testimony, roundBeganAt);
    };
    const breaches = await findBreaches(database, ZONE, () => readShown(emulator.url, ZONE), {
      falseTimes,
      phantomIds,
      isKnown,
    });
    if (breaches.length > 0) throw new Error(`at ${iso(emulator.now())}: ${breaches.join("\n")}`);
    roundBeganAt = beganAt;
    emulator.advance(Math.max(0, endsAt - emulator.now()));
  }

  /** Returns what is wrong in the hours that must be sealed. */
  async function findUnrepaired(endedAt: number): Promise<string[]> {
    const now = emulator.now();
    const forgetting = liar.tallies().filter(({ lie }) => lie.kind === "forgets");
    const kept = forgetting.map(({ lie }) => lie.keptMs ?? Number.POSITIVE_INFINITY);
    const keptFrom = Math.max(endedAt - Math.min(68 * HOUR_MS, ...kept), world.firstHour);
    const isJudged = (hour: number) => hour >= keptFrom && mustBeSealed(hour, now);
    const unsealed = (await readHours()).filter(({ at, state }) => isJudged(at) && state !== "sealed");
    stored = await readIds(database);
    const truth = new Map((await oracle(emulator, ZONE)).map((event) => [event.logId, event]));
    const missing = [...truth.values()].filter(({ logId, timestamp }) => {
      return !stored.has(logId) && isJudged(hourOf(timestamp));
    });
    const judged = [...stored].filter(([, { at }]) => isJudged(hourOf(at)));
    const unresolved = judged.filter(([id, { isResolved }]) => !isResolved && truth.has(id));
    const falseValues = judged.flatMap(([id, { at, values }]) => {
      const event = truth.get(id);
      const wrong = DIMENSIONS.filter((name) => {
        const value = values[name] ?? null;
        return event !== undefined && value !== null && value !== toStorable(event[name]);
      });
      return wrong.map((name) => `${iso(at)} ${id} has the ${name} ${values[name]}, not ${event?.[name]}`);
    });
    const { foreignIds } = liar.witness;
    const foreign = [...stored].filter(([id]) => foreignIds.has(id) && !truth.has(id));
    const known = await readCoveredHours(database.db, ZONE, { fromMs: keptFrom, toMs: now });
    const why = (at: number) => JSON.stringify(known.find(({ startsAt }) => startsAt === at)?.looks);
    return [
      ...unsealed.map(({ at, state, reason }) => `${iso(at)} is ${state}: ${reason ?? why(at)}`),
      ...missing.slice(0, 5).map(({ logId, timestamp }) => `${iso(timestamp)} ${logId} is not stored`),
      ...unresolved.slice(0, 5).map(([id, { at }]) => `${iso(at)} ${id} is not resolved`),
      ...falseValues.slice(0, 5),
      ...foreign.slice(0, 5).map(([id, { at }]) => `${iso(at)} ${id} is another zone's event`),
    ];
  }

  return {
    ...world,
    liar,
    round,
    hours: readHours,
    async pass(lastsMs, roundMs) {
      for (let passed = 0; passed < lastsMs; passed += roundMs) await round(roundMs);
    },
    async endLies() {
      const endedAt = emulator.now();
      liar.stop();
      while (!mustBeSealed(hourOf(endedAt), emulator.now())) await round(ROUND_MS);
      for (;;) {
        const wrong = await findUnrepaired(endedAt);
        if (wrong.length === 0 || emulator.now() >= endedAt + CALM_MS) return wrong;
        await round(ROUND_MS);
      }
    },
    async findUnresolvedSeals() {
      const sealed = new Set(
        (await readHours()).flatMap(({ at, state }) => (state === "sealed" ? [at] : [])),
      );
      const events = [...(await readIds(database))];
      return events.flatMap(([id, { at, isResolved }]) =>
        !isResolved && sealed.has(hourOf(at)) ? [id] : [],
      );
    },
  };
}

/** Returns whether a route has shown or counted the event since its hour settled, or metrics since its day settled. */
function isKnownToLack(
  { timestamp, shownAt, countedAt, measuredAt }: Testimony,
  measuredBefore: number,
): boolean {
  const settledAt = hourOf(timestamp) + HOUR_MS + SETTLE_MS;
  const isSince = (at: number | null) => at !== null && at >= settledAt;
  const measuredFrom = startOfDay(timestamp) + DAY_MS + SETTLE_MS;
  const isMeasured = measuredAt !== null && measuredAt >= measuredFrom && measuredAt < measuredBefore;
  return isSince(shownAt) || isSince(countedAt) || isMeasured;
}

async function readIds({ pool }: FaultyWorld["database"]) {
  const { rows } = await pool.query<{
    id: string;
    at: number;
    isResolved: boolean;
    values: Partial<Record<Dimension, string | null>>;
  }>(
    `select log_id as id, (extract(epoch from occurred_at) * 1000)::float8 as at,
       feature is not null and ip is not null and ip not like '%*%' as "isResolved",
       jsonb_build_object('feature', feature, 'ruleId', rule_id, 'ip', ip, 'ja4', ja4, 'ua', ua, 'url', url,
         'asn', asn, 'country', country, 'action', action) as values
     from waf_events where zone_id = $1`,
    [ZONE],
  );
  return new Map(rows.map(({ id, ...event }) => [id, event]));
}

/** Returns whether the hour has been over for so long that it must be sealed. */
function mustBeSealed(hour: number, now: number): boolean {
  return hour + HOUR_MS + 2 * SETTLE_MS <= now;
}

/** Returns a text as Postgres can store it. */
function toStorable(text: string): string {
  return text.replaceAll("\0", "\uFFFD").toWellFormed();
}

function hourOf(at: number): number {
  return at - (at % HOUR_MS);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
