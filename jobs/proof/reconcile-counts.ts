import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { mergeDoubles } from "#db/ingest/merge-doubles.ts";
import { eraseMergedRecords } from "#db/people/erase-events.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { assertFence } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import {
  lockHours,
  proveAnew,
  readCoveredHours,
  recordLastProof,
  writeLooks,
} from "#db/proof/covered-hours.ts";
import { readGone, readHorizon, writeHorizon } from "#db/proof/horizons.ts";
import {
  type HourComparison,
  readEndCells,
  readRolledCells,
  readStoredCells,
  recordComparison,
} from "#db/proof/reconcile.ts";
import { reopenHours } from "#db/proof/reopen-hours.ts";
import { type CoveredHour, nextLook } from "#model/covered-hour.ts";
import { horizonAt, KEPT_MS, startOfHour } from "#model/horizon.ts";
import { recordEraser } from "#people/rules/erasure-guard.ts";
import {
  type CellCounts,
  type ComparedHour,
  CountsUnreadableError,
  compareCounts,
  ignoreEnds,
  isMissing,
  isWholeCountsChange,
} from "#proof/rules/compare-counts.ts";
import {
  CLOCK_SKEW_MS,
  countDeficits,
  explainReopening,
  findChange,
  isAboveSeal,
  isAsSealed,
  learnHorizon,
  toCountsLook,
} from "#proof/rules/judge-counts.ts";
import { isSearchedAndSettled, planComparison } from "#proof/rules/plan-comparison.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import { type CopyLateDeps, createLateCopier, readRuleCounts } from "./copy-late.ts";
import { judgeRoute } from "./judge-route.ts";

const LEASE_TTL_MS = 15_000;
/** A cell is repaired only after this, because the hour's closing search probably returns the missing events. */
const SEARCH_GRACE_MS = 5 * 60_000;

export interface ReconcileCountsDeps extends CopyLateDeps {
  /** A sealed hour that is this old is compared a last time, for its evidence. */
  readonly lastProofMs: number;
  /** Called when cells lack events. */
  readonly afterMissing: (zoneId: number) => Promise<unknown>;
  /** Called when the stored counts of hours equal the platform's. */
  readonly afterMatch: (zoneId: number) => Promise<unknown>;
}

/**
 * Compares the stored events of one zone with the platform's own counts, cell by cell (rule and hour). One grouped
 * search covers all hours that the platform still serves, even sealed ones. A sealed hour that differs is reopened. Another
 * one covers the hours that have not settled, and what it shows to be missing is copied at once.
 * Several replicas may run this at once: each zone has one runner, and of two comparisons the later one counts.
 */
export function createReconcileCountsJob(deps: ReconcileCountsDeps): AnyJob {
  const copyLate = createLateCopier(deps);
  return defineJob({
    name: "reconcile-counts",
    queue: "ingest",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 3,
    timeoutMs: 300_000,
    async run({ zoneId }, signal) {
      const name = `reconcile-counts.${zoneId}`;
      const result = await holdLease(deps.database, { name, ttlMs: LEASE_TTL_MS }, async (lease) => {
        const until = AbortSignal.any([signal, lease.lost]);
        const zone = { zoneId, lease };
        // A failure of one comparison does not stop the other.
        for (const one of await Promise.allSettled([reconcile(deps, zone, until), copyLate(zone, until)]))
          if (one.status === "rejected") throw one.reason;
        return true;
      });
      return result === null ? LEASE_TAKEN : undefined;
    },
  });
}

interface Zone {
  readonly zoneId: number;
  readonly lease: OwnedLease;
}

async function reconcile(deps: ReconcileCountsDeps, zone: Zone, signal: AbortSignal): Promise<void> {
  const { database, edge, clock, log, settleMs } = deps;
  const { zoneId } = zone;
  // Taken before anything is read, so that all events stored from now on are newer than the comparison.
  const at = clock();
  const hours = await readCoveredHours(database.db, zoneId, { fromMs: horizonAt(at), toMs: at });
  const span = planComparison(at, hours, deps);
  if (span === null) return;
  const asked = hours.filter((hour) => isSearchedAndSettled(at, hour, { settleMs }));
  // Read before the platform is asked, so that a lower count of the platform is not caused by events that arrived
  // meanwhile.
  const stored = await readCells(database.db, zoneId, asked);
  let counts: Awaited<ReturnType<typeof readRuleCounts>>;
  try {
    counts = await readRuleCounts(edge, zoneId, span, signal);
  } catch (thrown) {
    if (thrown instanceof CountsUnreadableError) {
      const reason = `The platform's counts contradict themselves: ${thrown.message}.`;
      await judgeRoute(deps, {
        zoneId,
        route: "counts",
        atMs: at,
        contradiction: { reason, isWhole: false },
      });
    }
    throw thrown;
  }
  const upstream = counts.cells;
  // The platform may have begun to forget an hour while the request waited for its turn.
  const horizon = await judgeHorizon(deps, zone, { at, from: span.from, oldestAt: counts.oldestAt }, signal);
  const compared = asked.filter(({ startsAt }) => startsAt >= horizon);
  const starts = compared.map(({ startsAt }) => startsAt);
  const found = await compareWithoutEnds(database.db, zoneId, compareCounts(starts, upstream, stored));
  if (isWholeCountsChange(found)) {
    const reason = "The platform's counts differ from what is stored in most hours at once.";
    const contradiction = { reason, isWhole: true };
    if (await judgeRoute(deps, { zoneId, route: "counts", atMs: at, contradiction })) return;
  } else await judgeRoute(deps, { zoneId, route: "counts", atMs: at, contradiction: null });
  await mergeSurplus(deps, zone, { found, compared, upstream, at });
  const checked = await recount(database.db, zoneId, { found, upstream });
  const { reopened, open } = await inTransaction(database, async ({ tx }) => {
    const recorded = await record(tx, zoneId, {
      checked,
      compared,
      upstream,
      at,
      horizon,
      lastProofMs: deps.lastProofMs,
    });
    await assertFence(tx, zone.lease.name, zone.lease.fence);
    return recorded;
  });
  for (const { startsAt, reason } of reopened)
    log.warn({ zoneId, hour: new Date(startsAt), reason }, "sealed hour reopened");
  const facts = { zoneId, ...span, from: new Date(span.from), ...countDifferences(open) };
  if (facts.missing > 0) log.warn(facts, "counts differed");
  else log.debug(facts, "counts compared");
  if (facts.missing > 0) await deps.afterMissing(zoneId);
  if (open.some(({ differing }) => differing.length === 0)) await deps.afterMatch(zoneId);
}

/** Compares hours that have more events on the platform without those on a full hour, which both hours may count. */
async function compareWithoutEnds(
  db: Queryable,
  zoneId: number,
  hours: readonly ComparedHour[],
): Promise<ComparedHour[]> {
  const above = hours.flatMap(({ startsAt, differing }) => (differing.some(isMissing) ? [startsAt] : []));
  return ignoreEnds(hours, await readEndCells(db, zoneId, above));
}

interface OldestCounted {
  readonly at: number;
  /** Start of the compared span. */
  readonly from: number;
  /** Time of the oldest event that the platform counts; null if it counts none. */
  readonly oldestAt: number | null;
}

/**
 * Learns how long the platform keeps events, and returns the earliest moment that it still shows, epoch ms. If its counts
 * end later than what is stored, a search has to confirm that nothing older is left.
 */
async function judgeHorizon(
  { database: { db }, edge, clock, log }: ReconcileCountsDeps,
  { zoneId }: Zone,
  { at, from, oldestAt }: OldestCounted,
  signal: AbortSignal,
): Promise<number> {
  const known = await readHorizon(db, zoneId);
  if (oldestAt === null) return horizonAt(clock(), known.keptMs ?? KEPT_MS);
  const gone = await readGone(db, zoneId, { fromMs: from, toMs: oldestAt });
  let learned = learnHorizon(known, { at, oldestShownAt: oldestAt, gone });
  if (learned.keptMs !== null && learned.since !== known.since) {
    const request = { from, to: oldestAt, pageSize: 1 };
    const { page } = await edge.searchEventLogs({ shieldZoneId: zoneId, request }, signal);
    if (page.rows.length > 0) learned = known;
  }
  if (learned !== known) {
    await writeHorizon(db, zoneId, learned, at);
    if (learned.since !== known.since)
      log.warn(
        { zoneId, keptMs: learned.keptMs, beforeMs: known.keptMs ?? KEPT_MS },
        "platform's horizon changed",
      );
  }
  return horizonAt(clock(), learned.keptMs ?? KEPT_MS);
}

/**
 * Returns the counts by cell. The events of open hours are counted one by one. Sealed hours are read from the
 * roll-up, and from the events only if the roll-up is stale.
 */
async function readCells(db: Queryable, zoneId: number, hours: readonly CoveredHour[]): Promise<CellCounts> {
  const sealed = hours.flatMap(({ startsAt, state }) => (state === "sealed" ? [startsAt] : []));
  const rolled = await readRolledCells(db, zoneId, sealed);
  const others = hours.flatMap(({ startsAt }) => (rolled.has(startsAt) ? [] : [startsAt]));
  return new Map([...rolled, ...(await readStoredCells(db, zoneId, others))]);
}

interface Found {
  readonly found: readonly ComparedHour[];
  readonly compared: readonly CoveredHour[];
  readonly upstream: CellCounts;
  readonly at: number;
}

/** Merges events that the platform shows under two times, because such an event makes a surplus. */
async function mergeSurplus(
  { database, log }: ReconcileCountsDeps,
  { zoneId, lease }: Zone,
  { found, compared, upstream, at }: Found,
): Promise<void> {
  const known = new Map(compared.map((hour) => [hour.startsAt, hour]));
  for (const hour of found) {
    const before = known.get(hour.startsAt);
    const isAccepted = before?.state === "sealed" && isAsSealed(before, hour, upstream);
    if (countDeficits(hour).count === 0 || isAccepted) continue;
    const reason = "A log id was stored under two times.";
    const merged = await inTransaction(database, async ({ tx }) => {
      const doubles = await mergeDoubles(tx, zoneId, hour.startsAt, at);
      await eraseMergedRecords(tx, zoneId, doubles, recordEraser);
      const touched = new Set(doubles.map(({ otherAt }) => startOfHour(otherAt)));
      const reopened = Array.from(touched, (startsAt) => ({ startsAt, reason }));
      await reopenHours(tx, zoneId, reopened, at);
      await assertFence(tx, lease.name, lease.fence);
      return doubles;
    });
    if (merged.length > 0)
      log.warn({ zoneId, hour: new Date(hour.startsAt), events: merged.length }, "doubled events merged");
  }
}

/**
 * Recounts the events of every hour that differs: the roll-up may have been wrong, doubles may have been merged, and
 * an event that was stored while the platform was asked is no difference.
 */
async function recount(
  db: Queryable,
  zoneId: number,
  { found, upstream }: { found: readonly ComparedHour[]; upstream: CellCounts },
): Promise<ComparedHour[]> {
  const differing = found.flatMap((hour) => (hour.differing.length > 0 ? [hour.startsAt] : []));
  if (differing.length === 0) return [...found];
  const stored = await readStoredCells(db, zoneId, differing);
  const again = await compareWithoutEnds(db, zoneId, compareCounts(differing, upstream, stored));
  const recounted = new Map(again.map((hour) => [hour.startsAt, hour]));
  return found.map((hour) => recounted.get(hour.startsAt) ?? hour);
}

interface Checked {
  readonly checked: readonly ComparedHour[];
  /** The same hours as they were before their events were counted. */
  readonly compared: readonly CoveredHour[];
  readonly upstream: CellCounts;
  readonly at: number;
  /** The earliest moment that could still be requested when the platform had answered. */
  readonly horizon: number;
  readonly lastProofMs: number;
}

/**
 * Stores the comparison: looks, withdrawn seals, last proofs, and the cells of open hours that differ. The result for
 * an hour that gained an event meanwhile is not stored as a look.
 */
async function record(
  tx: Queryable,
  zoneId: number,
  { checked, compared: counted, upstream, at, horizon, lastProofMs }: Checked,
) {
  const starts = checked.map(({ startsAt }) => startsAt);
  const locked = await lockHours(tx, zoneId, starts);
  const compared = locked.flatMap((before) => {
    const hour = checked.find(({ startsAt }) => startsAt === before.startsAt);
    return hour === undefined || before.state === "gap" ? [] : [{ before, hour }];
  });
  const isUnchanged = ({ before }: (typeof compared)[number]) => (before.lastNewAt ?? 0) < at;
  const sealed = compared.filter(({ before }) => before.state === "sealed");
  const same = sealed.filter(({ before, hour }) => isAsSealed(before, hour, upstream));
  const broken = sealed.filter((one) => isUnchanged(one) && !same.includes(one) && !isExpiring(one, horizon));
  const reopened = broken.map(({ before, hour }) => ({
    startsAt: hour.startsAt,
    reason: explainReopening(before, hour),
  }));
  await reopenHours(tx, zoneId, reopened, at);
  const confirmed = same.filter(isUnchanged);
  const old = confirmed.flatMap(({ hour: { startsAt } }) => (startsAt <= at - lastProofMs ? [startsAt] : []));
  if (old.length > 0) await recordLastProof(tx, zoneId, old, at);

  const open = compared.filter((one) => one.before.state === "open" || broken.includes(one));
  const unchanged = open.filter(isUnchanged);
  // The look of a sealed hour's seal stays.
  const looks = new Map(
    unchanged.map(({ before, hour }) => {
      const seen = toCountsLook(hour, upstream, at);
      return [hour.startsAt, { ...before.looks, counts: nextLook(before.looks.counts, seen) }] as const;
    }),
  );
  await writeLooks(tx, zoneId, looks);
  const changes = Map.groupBy(unchanged, ({ before }) =>
    findChange(before, looks.get(before.startsAt)?.counts),
  );
  for (const [from, changed] of changes) {
    const hours = changed.map(({ hour }) => hour.startsAt);
    if (from !== null) await proveAnew(tx, zoneId, hours, from);
  }
  const counters = new Map(counted.map(({ startsAt, storedCount }) => [startsAt, storedCount]));
  const comparisons = open.map(({ before, hour }): HourComparison => {
    const repairAt = before.closingSearchAt === null ? at + SEARCH_GRACE_MS : at;
    return { ...hour, counterBefore: counters.get(hour.startsAt) ?? -1, repairAt };
  });
  await recordComparison(tx, zoneId, comparisons, at);
  return { reopened, open: open.map(({ hour }) => hour) };
}

/** Returns whether the platform may count fewer events of a sealed hour because it has begun to forget the hour. */
function isExpiring({ before, hour }: { before: CoveredHour; hour: ComparedHour }, horizon: number): boolean {
  return hour.startsAt < horizon + CLOCK_SKEW_MS && !isAboveSeal(before, hour);
}

function countDifferences(hours: readonly ComparedHour[]): { missing: number; surplus: number } {
  const cells = hours.flatMap(({ differing }) => differing);
  const missing = cells.filter(isMissing).length;
  return { missing, surplus: cells.length - missing };
}
