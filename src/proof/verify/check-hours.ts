/** The comparisons of hours: counts, days, seals, sources and roll-ups. */

import { compareBuckets } from "#db/detection/compare-buckets.ts";
import { listKnownSources, toKnownSource } from "#db/detection/exclusions.ts";
import { compareDays } from "#db/detection/rule-metrics.ts";
import { readCoverageHours } from "#db/proof/coverage-report.ts";
import { countHours, readDoubledIds, readOneHour } from "#db/proof/hour-contents.ts";
import { readStoredCells, readWithdrawnCells } from "#db/proof/reconcile.ts";
import { compareSourceHours } from "#jobs/detection/count-source-hours.ts";
import { readRuleCounts } from "#jobs/proof/copy-late.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { createKnownSources, type KnownSource } from "#model/known-source.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { CountsUnreadableError, compareCounts } from "#proof/rules/compare-counts.ts";
import { findSealFaults } from "#proof/rules/judge-counts.ts";
import {
  type Check,
  type Checked,
  type Compared,
  type Difference,
  eachPart,
  findAskable,
  showIds,
} from "./check.ts";
import { checkIds, checkRecords } from "./check-events.ts";

/** Compares the stored count of each hour with its events. */
async function checkHours({ db, zoneId, onStep, ...span }: Checked): Promise<Compared> {
  const differences: Difference[] = [];
  let hours = 0;
  for (const part of eachPart(span, DAY_MS)) {
    onStep("hour counts", (part.from - span.from) / (span.to - span.from));
    for (const { startsAt, events, counted } of await countHours(db, zoneId, part)) {
      hours++;
      if (events !== counted)
        differences.push({ at: startsAt, ruleId: null, expected: events, found: counted, detail: null });
    }
  }
  return {
    name: "hour counts",
    sides: ["events", "the hour's count"],
    compared: many(hours, "hour"),
    differences,
  };
}

/**
 * Compares the platform's count of each rule in each hour with the stored events. A count that is lower by exactly the
 * withdrawn events is a note.
 */
async function checkCounts(
  { db, zoneId, now, onStep, signal, ...span }: Checked,
  edge: Pick<EdgeClient, "searchEventLogs">,
): Promise<Compared> {
  const { askable, notes } = findAskable(now, span);
  const differences: Difference[] = [];
  const asked = { hours: 0, counts: 0 };
  for (const { from, to } of askable === null ? [] : eachPart(askable, DAY_MS)) {
    onStep("platform counts", (from - span.from) / (span.to - span.from));
    const hours = Array.from({ length: (to - from) / HOUR_MS }, (_, index) => from + index * HOUR_MS);
    const { cells: upstream } = await readRuleCounts(edge, zoneId, { from, buckets: hours.length }, signal);
    const stored = await readStoredCells(db, zoneId, hours);
    const withdrawn = await readWithdrawnCells(db, zoneId, { from, to });
    asked.hours += hours.length;
    asked.counts += [...upstream.values()].reduce((sum, rules) => sum + rules.size, 0);
    for (const { startsAt, differing } of compareCounts(hours, upstream, stored)) {
      let explained = 0;
      for (const { ruleId, upstreamCount: expected, storedCount: found } of differing)
        if (found - expected === withdrawn.get(startsAt)?.get(ruleId)) explained += found - expected;
        else differences.push({ at: startsAt, ruleId, expected, found, detail: null });
      if (explained > 0)
        notes.push(
          `${showTime(startsAt)}: ${many(explained, "stored event")} withdrawn by the platform, nothing to do`,
        );
    }
  }
  return {
    name: "platform counts",
    sides: ["the platform", "stored"],
    compared: `${many(asked.hours, "hour")}, ${many(asked.counts, "count")} of a rule in an hour`,
    differences,
    notes,
  };
}

const SHOWN = 40;

/**
 * Compares the platform's last daily counts with the stored events of sealed days. The platform's counts may be late and
 * may be counted in another way, so a higher count is a note and no difference.
 */
async function checkDays({ db, zoneId, from, to }: Checked): Promise<Compared> {
  const { compared, beyond } = await compareDays(db, zoneId, { fromMs: from, toMs: to });
  const notes = beyond
    .slice(0, SHOWN)
    .map(
      ({ day, ruleId, upstream, stored }) =>
        `${day}  rule ${shortenText(ruleId, 60)}: the platform ${formatWhole(upstream)}, stored ${formatWhole(stored)} (the platform's daily counts may be inexact)`,
    );
  const more = beyond.length - SHOWN;
  return {
    name: "daily counts",
    sides: ["the platform", "stored"],
    compared: `${many(compared, "count")} of a rule on a sealed day`,
    verdict:
      beyond.length === 0
        ? "none higher on the platform"
        : `${formatWhole(beyond.length)} higher on the platform`,
    differences: [],
    notes: more > 0 ? [...notes, `and ${formatWhole(more)} more`] : notes,
  };
}

/**
 * Checks that each sealed hour still matches its seal: the same events, each once and with every dimension. The
 * platform's count at the seal must not be lower.
 */
async function checkSeals({ db, zoneId, onStep, ...span }: Checked): Promise<Compared> {
  const differences: Difference[] = [];
  const hours = await readCoverageHours(db, zoneId, span);
  const sealed = hours.filter(({ state }) => state === "sealed");
  for (const [index, hour] of sealed.entries()) {
    const { startsAt: at } = hour;
    onStep("seals", index / sealed.length);
    const faults = findSealFaults(hour, await readOneHour(db, zoneId, at));
    const doubled = await readDoubledIds(db, zoneId, { fromMs: at, toMs: at + HOUR_MS });
    differences.push(
      ...faults.map(({ text, ...numbers }) => ({ at, ruleId: null, ...numbers, detail: text })),
    );
    if (doubled.length > 0) {
      const detail = showIds("stored with two different times:", doubled);
      differences.push({ at, ruleId: null, expected: 0, found: doubled.length, detail });
    }
  }
  return {
    name: "seals",
    sides: ["its seal", "stored"],
    compared: many(sealed.length, "sealed hour"),
    differences,
  };
}

/** The source series are kept for eight days. */
const KEPT_HOURS = 8 * 24;

/** Compares the counted hours of the source series with a recount of their events. */
async function checkSources(
  { db, zoneId, now, onStep, from, to }: Checked,
  fromFile: readonly KnownSource[],
): Promise<Compared> {
  onStep("sources", 0);
  const oldest = Math.floor(now / HOUR_MS) - KEPT_HOURS;
  const fromHour = Math.max(Math.floor(from / HOUR_MS), oldest);
  const list = [...fromFile, ...(await listKnownSources(db)).map(toKnownSource)];
  const known = createKnownSources(list, now)(zoneId);
  const found = await compareSourceHours(db, zoneId, { fromHour, toHour: Math.ceil(to / HOUR_MS), known });
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  return {
    name: "sources",
    sides: ["events", "the hour's peaks"],
    compared: "the counted hours of the source series",
    differences: found.map(({ hour, stored, recounted }) => ({
      at: hour * HOUR_MS,
      ruleId: null,
      expected: sum(recounted),
      found: sum(stored),
      detail: "the largest counts of the hour, added up",
    })),
  };
}

const NAMES: Record<number, string> = { 60: "minute", 3600: "hour", 86400: "day" };

/** Compares the buckets of minutes, hours and days with their events. */
async function checkRollUps({ db, zoneId, onStep, ...span }: Checked): Promise<Compared> {
  const differences: Difference[] = [];
  let days = 0;
  let pending = 0;
  for (const part of eachPart(span, DAY_MS)) {
    days++;
    onStep("roll-ups", (part.from - span.from) / (span.to - span.from));
    const found = await compareBuckets(db, { zoneId, from: new Date(part.from), to: new Date(part.to) });
    for (const { ruleId, width, startsAt, stored, recounted, isPending } of found) {
      if (isPending) {
        pending++;
        continue;
      }
      const [expected, bucket] = [recounted?.total ?? 0, stored?.total ?? 0];
      const name = NAMES[width] ?? `${width} s`;
      const detail = expected === bucket ? `${name}; its counts per action differ` : name;
      differences.push({ at: startsAt.getTime(), ruleId, expected, found: bucket, detail });
    }
  }
  return {
    name: "roll-ups",
    sides: ["events", "the bucket"],
    compared: `the buckets of ${many(days, "day")}`,
    differences,
    notes:
      pending === 0 ? [] : [`${many(pending, "stale bucket")} not compared: the roll-up will update them`],
  };
}

export interface ChecksToRun extends Checked {
  /** Null: the platform is not asked. */
  readonly edge: Pick<EdgeClient, "searchEventLogs"> | null;
  /** Also compares a few hours id by id. */
  readonly ids: boolean;
  /** Those of the configuration file. */
  readonly knownSources: readonly KnownSource[];
}

/** Runs every check over whole hours. `onStep` is called with the finished share of all checks. */
export async function runChecks({
  edge,
  ids,
  knownSources,
  onStep,
  ...asked
}: ChecksToRun): Promise<Check[]> {
  const counts = { name: "platform counts", check: checkCounts };
  const ofPlatform = ids ? [counts, { name: "event ids", check: checkIds }] : [counts];
  const checkCounted = (one: Checked) => checkSources(one, knownSources);
  const ofStore = [checkDays, checkHours, checkSeals, checkRollUps, checkCounted, checkRecords];
  const all = ofPlatform.length + ofStore.length;
  const checks: Check[] = [];
  const checked: Checked = {
    ...asked,
    onStep: (label, share) => {
      asked.signal.throwIfAborted();
      onStep(label, (checks.length + share) / all);
    },
  };
  if (edge === null) checks.push(notAsked());
  else
    for (const { name, check } of ofPlatform)
      checks.push(await askPlatform(name, () => check(checked, edge)));
  for (const check of ofStore) checks.push({ ...NOTHING, ...(await check(checked)) });
  return checks;
}

/** Turns a failure of the platform into a failed check, so that the other checks still run. */
async function askPlatform(name: string, check: () => Promise<Compared>): Promise<Check> {
  try {
    return { ...NOTHING, ...(await check()) };
  } catch (thrown) {
    if (!(thrown instanceof EdgeError) && !(thrown instanceof CountsUnreadableError)) throw thrown;
    return { ...NOTHING, name, failure: `${thrown.code} ${thrown.message}` };
  }
}

function notAsked(): Check {
  return {
    ...NOTHING,
    compared: "nothing",
    notes: ["the platform was not asked, because EDGE_API_URL is not set"],
  };
}

const NOTHING: Check = {
  name: "platform counts",
  sides: ["the platform", "stored"],
  compared: "nothing",
  differences: [],
  notes: [],
  failure: null,
};
