import { type VerifiedArchive, verifyArchive } from "#archive/operations/verify-archive.ts";
import type { RequestedRun } from "#db/health/requested-runs.ts";
import type { Backfill } from "#db/proof/backfills.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import type { ExecuteRun } from "#jobs/health/run-requested.ts";
import { UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { toDay } from "#model/horizon.ts";
import type { KnownSource } from "#model/known-source.ts";
import type { BackfillDeps } from "#proof/backfill/backfill-deps.ts";
import { countUpstream, planBackfill, runBackfill } from "#proof/backfill/run-backfill.ts";
import { type Check, widenSpan } from "#proof/verify/check.ts";
import { runChecks } from "#proof/verify/check-hours.ts";

/** Differences of one check, or problems of archive days, that are kept; the command line shows all of them. */
const KEPT_DIFFERENCES = 100;

const ONLY_ARCHIVED = "These days are only in the archive. Start a run of the kind verify-archive instead.";
const NOTHING_STORED = "Nothing of this span is stored.";
const NO_ARCHIVE =
  "The archive is not configured in this process. Set LONGWATCH_ARCHIVE_DIR or LONGWATCH_ARCHIVE_URL.";

type BackfillResult = {
  readonly kind: "backfill";
  readonly route: string;
  readonly newEvents: number;
  /** Spans that the platform forgot before they were read; epoch ms. */
  readonly expired: readonly { readonly from: number; readonly to: number }[];
};

type VerifyResult = {
  readonly kind: "verify";
  readonly from: number;
  readonly to: number;
  readonly checks: readonly (Check & { readonly differenceCount: number })[];
};

type VerifyArchiveResult = Omit<VerifiedArchive, "problems"> & {
  readonly kind: "verify-archive";
  readonly problemCount: number;
  readonly problems: VerifiedArchive["problems"];
};

/** The result that a successful run stores in its row. */
export type RunResult = BackfillResult | VerifyResult | VerifyArchiveResult;

export interface ExecuteRunDeps extends Omit<BackfillDeps, "onWait"> {
  /** Returns those of the configuration file. */
  readonly knownSources: () => readonly KnownSource[];
  /** Null if this process archives nothing. */
  readonly archive: ArchiveStore | null;
}

/** Executes the backfills and verifications that the API was asked for, with the code of the command line. */
export function createExecuteRun(deps: ExecuteRunDeps): ExecuteRun {
  const execute = { backfill, verify, "verify-archive": verifyArchiveDays };
  return (run, how): Promise<RunResult> => execute[run.kind](deps, run, how);
}

type How = Parameters<ExecuteRun>[1];

async function backfill(
  deps: ExecuteRunDeps,
  run: RequestedRun,
  { signal, onProgress }: How,
): Promise<BackfillResult> {
  const { database, clock, edge } = deps;
  const { zoneId, from, to } = run;
  let [entries, total] = [0, 0];
  const show = (step: string) => onProgress({ share: total === 0 ? 0 : entries / total, step });
  const observer: BackfillDeps["observer"] = {
    pageStored(facts) {
      deps.observer.pageStored(facts);
      entries += facts.entries;
      show(`${many(entries, "event")} read`);
    },
  };
  const key = await planBackfill(database.db, { zoneId, route: "auto", from, to }, clock());
  let endedAt: number | null = null;
  const onOpened = async (opened: Backfill) => {
    ({ endedAt } = opened);
    if (endedAt === null) total = await countUpstream(edge, opened, clock());
  };
  const read = (restart: boolean) =>
    runBackfill({ ...deps, observer, onWait: show }, { key, restart, onOpened }, signal);
  const first = await read(false);
  // The span was read before this run was requested, and a person wants it to be read again.
  const isOld = first.wasEnded && endedAt !== null && endedAt < run.requestedAt;
  const { newEvents, expired } = isOld ? await read(true) : first;
  return { kind: "backfill", route: key.route, newEvents, expired };
}

async function verify(
  { database, clock, edge, knownSources }: ExecuteRunDeps,
  run: RequestedRun,
  { signal, onProgress }: How,
): Promise<VerifyResult> {
  const { zoneId, withIds: ids, from, to } = run;
  const now = clock();
  const span = await widenSpan(database.db, { zoneId, now, from, to });
  if (span.kind !== "whole")
    throw new UsageError([span.kind === "archived" ? ONLY_ARCHIVED : NOTHING_STORED]);
  const checks = await runChecks({
    db: database.db,
    edge,
    zoneId,
    now,
    ids,
    knownSources: knownSources(),
    onStep: (label, share) => onProgress({ share, step: label }),
    signal,
    from: span.from,
    to: span.to,
  });
  return {
    kind: "verify",
    from: span.from,
    to: span.to,
    checks: checks.map((check) => ({
      ...check,
      differenceCount: check.differences.length,
      differences: check.differences.slice(0, KEPT_DIFFERENCES),
    })),
  };
}

async function verifyArchiveDays(
  { database, archive }: ExecuteRunDeps,
  { zoneId, from, to }: RequestedRun,
  { signal, onProgress }: How,
): Promise<VerifyArchiveResult> {
  if (archive === null) throw new UsageError([NO_ARCHIVE]);
  const verifying = {
    ...archive,
    signal,
    onProgress: (share: number, step: string) => onProgress({ share, step }),
  };
  const scope = { zoneId, from: toDay(from), to: toDay(to) };
  const { problems, ...counts } = await verifyArchive(database.db, verifying, scope);
  return {
    kind: "verify-archive",
    ...counts,
    problemCount: problems.length,
    problems: problems.slice(0, KEPT_DIFFERENCES),
  };
}
