/** Reads counts, and copies events that arrived late. */

import { readUnrecordedHours } from "#db/ingest/raw-blocks.ts";
import type { OwnedLease } from "#db/postgres/hold-lease.ts";
import { proveAnew, readCoveredHours } from "#db/proof/covered-hours.ts";
import { readStoredCells } from "#db/proof/reconcile.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { daysOf } from "#model/waf-event.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { searchPages } from "#platform/search-event-logs.ts";
import {
  addGroups,
  type CountsRead,
  CountsUnreadableError,
  compareCounts,
} from "#proof/rules/compare-counts.ts";
import {
  type CountedSpan,
  type LackingMinute,
  planLateComparison,
  planLateSearches,
} from "#proof/rules/plan-comparison.ts";
import type { JobContext } from "../context.ts";
import { type CopySearchDeps, copySearch } from "../ingest/copy-search.ts";

/** The records of so many events are looked for in about a second. In larger zones the hourly passes find what is missing. */
const MOST_CHECKED = 300_000;

export interface CopyLateDeps extends CopySearchDeps, Pick<JobContext, "log" | "settleMs" | "overlapMs"> {
  /** A zone is compared again when its last comparison is older than this. */
  readonly lateEveryMs: number;
}

interface Zone {
  readonly zoneId: number;
  /** Every page is committed under its fence. */
  readonly lease: OwnedLease;
}

/**
 * Returns a function that copies what the platform shows of a zone's unsettled hours later than the polls look back. One
 * grouped search counts the minutes of these hours, and only minutes of which it counts more than is stored are
 * searched. A minute whose search found nothing is searched again later and later, because the counts may be wrong. If the
 * record of a stored event is missing, the list of its day is read again from its beginning.
 */
export function createLateCopier(deps: CopyLateDeps) {
  const { database, edge, clock, log, settleMs, lateEveryMs } = deps;
  const comparedAt = new Map<number, number>();
  const searched = new Map<number, readonly LackingMinute[]>();
  return async ({ zoneId, lease }: Zone, signal: AbortSignal): Promise<void> => {
    const at = clock();
    if (at - (comparedAt.get(zoneId) ?? 0) < lateEveryMs) return;
    const hours = await readCoveredHours(database.db, zoneId, { fromMs: at - DAY_MS, toMs: at });
    const span = planLateComparison(at, hours, deps);
    if (span === null) return;
    const { cells } = await readRuleCounts(edge, zoneId, span, signal);
    comparedAt.set(zoneId, at);
    const minutes = [...cells.keys()].sort((a, b) => a - b);
    // Read after the platform has answered: an event that was stored meanwhile is not missing.
    const stored = await readStoredCells(database.db, zoneId, minutes, MINUTE_MS);
    const compared = compareCounts(minutes, cells, stored);
    const { spans, lacking } = planLateSearches(at, compared, searched.get(zoneId) ?? []);
    searched.set(zoneId, lacking);
    for (const { from, to } of spans) {
      signal.throwIfAborted();
      const copied = await copySearch(deps, { zoneId, lease, from, to, expectNew: false }, signal);
      const { pages, inserted } = copied;
      log.info({ zoneId, from: new Date(from), to: new Date(to), pages, inserted }, "late events searched");
    }
    // Short passes read the younger entries of the list again. For an older one the day is read from its beginning.
    const listed = { fromMs: span.from, toMs: at - settleMs };
    const days = daysOf([{ occurredAt: listed.fromMs }, { occurredAt: listed.toMs }]);
    const events = hours.reduce((sum, hour) => sum + (hour.startsAt < span.from ? 0 : hour.storedCount), 0);
    if (events > MOST_CHECKED) return;
    const unlisted = hours.flatMap(({ looks }) => looks.list?.unlisted?.features ?? []);
    const unrecorded = await readUnrecordedHours(database.db, zoneId, { ...listed, days }, unlisted);
    if (unrecorded.length > 0) await proveAnew(database.db, zoneId, unrecorded, at);
  };
}

/** Maximum page size of the platform; platform API spec 2.3. */
const PAGE_SIZE = 500;

/**
 * Returns the platform's counts of each rule in each bucket of the span, and the time of the oldest counted event, from all
 * pages of one grouped search.
 * @throws {CountsUnreadableError} when the counts contradict themselves, as when a rule appears while the pages are
 * read.
 */
export async function readRuleCounts(
  edge: Pick<EdgeClient, "searchEventLogs">,
  zoneId: number,
  span: CountedSpan,
  signal: AbortSignal,
): Promise<Pick<CountsRead, "cells" | "oldestAt">> {
  const to = span.from + span.buckets * (span.bucketMs ?? HOUR_MS);
  const grouped = { groupBy: ["ruleId" as const], buckets: span.buckets, pageSize: PAGE_SIZE };
  const params = { shieldZoneId: zoneId, request: { from: span.from, to, ...grouped } };
  const read: CountsRead = { rules: new Set(), cells: new Map(), oldestAt: null };
  let total = 0;
  for await (const { page } of searchPages(edge.searchEventLogs, params, signal)) {
    addGroups(read, page.groups, span);
    total = page.total;
  }
  if (read.rules.size !== total)
    throw new CountsUnreadableError(`the platform names ${total} rules and shows ${read.rules.size}`);
  return read;
}
