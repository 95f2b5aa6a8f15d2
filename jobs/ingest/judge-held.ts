import { z } from "zod";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#adapters/queue/define-job.ts";
import type { Database } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import {
  deleteHeldEvents,
  readHeldBlock,
  readHeldCounts,
  readHeldEvents,
  releaseHeldBlock,
  releaseHeldEntries,
} from "#db/ingest/held-pages.ts";
import { storePage } from "#db/ingest/store-page.ts";
import { type HeldLease, holdLease } from "#db/postgres/hold-lease.ts";
import type { PartitionKeeper } from "#db/postgres/partitions.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import { daysOf } from "#model/waf-event.ts";

const LEASE = { name: "judge-held", ttlMs: 15_000 };
const EVENTS_PER_TRANSACTION = 2_000;
const ENTRIES_PER_TRANSACTION = 200;

export interface JudgeHeldDeps {
  readonly database: Database;
  readonly partitions: PartitionKeeper;
  readonly clock: Clock;
  readonly log: Pick<Log, "info">;
  readonly erasures: ErasureGuard;
  /** Called after each batch of events that was stored. */
  readonly afterPage: () => unknown;
}

/**
 * Judges the data that was held back while the pseudonym key was missing, and stores it. Does nothing while the key is
 * still missing. After a kill the next job continues. If two jobs run at once, only one works.
 */
export function createJudgeHeldJob(deps: JudgeHeldDeps): AnyJob {
  return defineJob({
    name: "judge-held",
    queue: "ingest",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 600_000,
    run: (_, signal) => judgeHeld(deps, signal),
  });
}

export async function judgeHeld(deps: JudgeHeldDeps, signal: AbortSignal) {
  const held = await readHeldCounts(deps.database.db);
  if (held.length === 0) return "no event is held";
  if ((await deps.erasures.judge([])) === null) return "the pseudonym key is missing";
  const done = await holdLease(deps.database, LEASE, async (lease) => {
    const until = AbortSignal.any([signal, lease.lost]);
    for (const { zoneId, ...counts } of held) {
      await judgeEvents(deps, { zoneId, lease }, until);
      await judgeBlocks(deps, { zoneId, lease }, until);
      await judgeEntries(deps, { zoneId, lease }, until);
      if (until.aborted) return;
      deps.log.info({ zoneId, ...counts }, "held events judged and stored");
    }
  });
  return done === null ? LEASE_TAKEN : undefined;
}

interface Zone {
  readonly zoneId: number;
  readonly lease: HeldLease;
}

async function judgeEvents(
  { database, partitions, clock, erasures, afterPage }: JudgeHeldDeps,
  { zoneId, lease }: Zone,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const events = await readHeldEvents(database.db, zoneId, EVENTS_PER_TRANSACTION);
    if (events.length === 0) return;
    const page = {
      zoneId,
      lease,
      events,
      expectNew: false,
      mustJudge: true,
      storedAt: clock(),
      erasures,
      quarantined: [],
      rawBlocks: [],
    };
    await partitions.withDays(daysOf(events), () =>
      storePage(database, page, (tx) => deleteHeldEvents(tx, zoneId, events)),
    );
    afterPage();
  }
}

async function judgeBlocks(
  { database, partitions, erasures: guard }: JudgeHeldDeps,
  { zoneId, lease }: Zone,
  signal: AbortSignal,
): Promise<void> {
  let after: string | null = null;
  while (!signal.aborted) {
    const block = await readHeldBlock(database.db, zoneId, after);
    if (block === null) return;
    await partitions.withDays([block.day], () => releaseHeldBlock(database, { zoneId, lease, guard }, block));
    after = block.blockId;
  }
}

async function judgeEntries(
  { database, erasures: guard }: JudgeHeldDeps,
  { zoneId, lease }: Zone,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const { entries } = await releaseHeldEntries(database, { zoneId, lease, guard }, ENTRIES_PER_TRANSACTION);
    if (entries === 0) return;
  }
}
