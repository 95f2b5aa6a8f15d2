import { z } from "zod";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import { bringCurrent } from "#db/archive/bring-file.ts";
import { watchExclusions } from "#db/detection/exclusions.ts";
import { readAttacks } from "#db/detection/spikes.ts";
import { USUAL_MS } from "#db/detection/verdict-evidence.ts";
import { readFirstUses, readFirstUsesOfFile, storeUsual } from "#db/detection/verdicts.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { toAttackHours } from "#detection/rules/backtest/backtest.ts";
import { toUrlPattern } from "#detection/rules/exclusion/write-forms.ts";
import { findUsual } from "#detection/rules/verdict/evidence.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { ArchiveStore } from "../archive/archive-store.ts";
import type { JobContext } from "../context.ts";

export interface LearnUsualDeps extends Pick<JobContext, "database" | "clock" | "actions"> {
  /** Null: every day is in Postgres. */
  readonly archive: ArchiveStore | null;
  /** How long full addresses are kept. */
  readonly ipDays: number;
}

/**
 * Learns what is usual in a zone from the whole days of the last 40: an ASN that was seen on five days, a JA4 that twenty
 * addresses had, a path template that three addresses used, each since the event that completed the number. Hours of attacks
 * that a person marked are left out, so a mark withdraws what only the attack made usual. Also finds proposed exclusions that
 * somebody has followed.
 */
export function createLearnUsualJob(deps: LearnUsualDeps): AnyJob {
  const { database, clock } = deps;
  return defineJob({
    name: "learn-usual",
    queue: "derive",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 2,
    timeoutMs: 600_000,
    async run({ zoneId }, signal) {
      const lease = { name: `learn-usual.${zoneId}`, ttlMs: 15_000 };
      const learnt = await holdLease(database, lease, async ({ lost }) => {
        const found = await findUsual(
          readDays(deps, { zoneId, nowMs: clock(), signal: AbortSignal.any([signal, lost]) }),
        );
        await storeUsual(database.db, zoneId, found);
        await watchExclusions(database.db, zoneId, { nowMs: clock(), toUrlPattern, actions: deps.actions });
        return found.length;
      });
      if (learnt === null) return LEASE_TAKEN;
      return learnt === 0 ? "nothing is usual yet" : undefined;
    },
  });
}

/** Yields the first uses of values on each day, from the archive's file if there is one. */
async function* readDays(
  { database: { db }, archive, ipDays }: LearnUsualDeps,
  { zoneId, nowMs, signal }: { zoneId: number; nowMs: number; signal: AbortSignal },
) {
  const to = startOfDay(nowMs);
  // An older address is a pseudonym, which would count as another user.
  const first = to - Math.min(USUAL_MS, ipDays * DAY_MS);
  const leftOut = [...toAttackHours(await readAttacks(db, { afterMs: first, zoneId }))];
  const archived = await readArchivedDays(db, zoneId, { from: first, to });
  if (archived.length > 0 && archive === null)
    throw new Error("there are archive days, but no archive folder was given");
  for (let from = first; from < to; from += DAY_MS) {
    signal.throwIfAborted();
    const file = archived.find((day) => day.from === from)?.events;
    if (file === undefined || archive === null)
      yield await readFirstUses(db, zoneId, { from, to: from + DAY_MS }, leftOut);
    else {
      const path = await bringCurrent({ db, storage: archive.storage }, file, signal);
      yield await readFirstUsesOfFile(archive.duckdb, path, leftOut, signal);
    }
  }
}
