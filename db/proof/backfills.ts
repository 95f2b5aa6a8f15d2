/** Hours that a person has asked to read again. */
import { and, asc, eq, gte, lt, sql } from "drizzle-orm";
import { HOUR_MS } from "#lib/units.ts";
import type { ReadAgain } from "#model/covered-hour.ts";
import { startOfHour } from "#model/horizon.ts";
import type { BackfillRoute } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";

/** The span that a backfill reads again; times in epoch ms. */
export interface BackfillKey {
  readonly zoneId: number;
  readonly route: BackfillRoute;
  readonly from: number;
  readonly to: number;
}

/** A backfill and its progress, as its hours say it. */
export interface Backfill extends BackfillKey {
  /** When it was requested. */
  readonly at: number;
  /** The hours that are left to be read, oldest first. */
  readonly left: readonly { readonly startsAt: number; readonly isEmpty: boolean }[];
  /** Every hour before this time was read. */
  readonly doneThrough: number;
  /** Null until the backfill ends. */
  readonly endedAt: number | null;
  /** Events of its hours that were not stored when it was requested. */
  readonly newEvents: number;
}

/**
 * Marks the hours of a span as to be read again, and returns the backfill. An unfinished backfill by the same route goes
 * on, and takes over hours that are new in the span: `-6h` means another span whenever it is typed. A backfill whose
 * hours were all read to their end is returned as it ended. Call in a transaction, under the lease of the zone's backfills.
 */
export async function openBackfill(
  tx: Queryable,
  key: BackfillKey,
  { now, restart }: { now: number; restart: boolean },
): Promise<Backfill> {
  await tx.execute(sql`
    insert into ${coverageWindows} (${KEY})
    select ${key.zoneId}, hour from generate_series(
      ${new Date(startOfHour(key.from))}::timestamptz, ${new Date(key.to - 1)}::timestamptz, interval '1 hour') as hour
    on conflict (${KEY}) do nothing`);
  const hours = await readHours(tx, key).for("update");
  const own = hours.flatMap(({ readAgain }) => (readAgain?.by === key.route ? [readAgain] : []));
  const unfinished = own.filter(({ doneAt }) => doneAt === undefined);
  const latest = Math.max(...(unfinished.length > 0 ? unfinished : own).map(({ at }) => at));
  const left = hours.filter(({ startsAt, readAgain: mark }) => {
    const isOwn = mark?.by === key.route && mark.at === latest;
    return !isOwn || (mark.doneAt ?? 0) < Math.min(startsAt.getTime() + HOUR_MS, key.to);
  });
  const goesOn = !restart && (unfinished.length > 0 || left.length === 0);
  const at = goesOn ? latest : now;
  for (const { startsAt, storedCount, readAgain: before } of goesOn ? left : hours) {
    const stored = goesOn && before?.at === at ? before.stored : storedCount;
    await tx
      .update(coverageWindows)
      .set({ readAgain: { at, by: key.route, stored } })
      .where(and(eq(coverageWindows.zoneId, key.zoneId), eq(coverageWindows.startsAt, startsAt)));
  }
  return readBackfill(tx, key, at);
}

/** Returns the backfill that was requested at this time, epoch ms. */
export async function readBackfill(db: Queryable, key: BackfillKey, at: number): Promise<Backfill> {
  const hours = await readHours(db, key);
  const own = hours.flatMap(({ readAgain, ...hour }) =>
    readAgain?.at === at ? [{ ...hour, readAgain }] : [],
  );
  const left = own
    .filter(({ readAgain: { doneAt } }) => doneAt === undefined)
    .map(({ startsAt, storedCount }) => ({ startsAt: startsAt.getTime(), isEmpty: storedCount === 0 }));
  const [next] = left;
  return {
    ...key,
    at,
    left,
    doneThrough: next === undefined ? key.to : Math.max(key.from, next.startsAt),
    endedAt: next === undefined ? Math.max(...own.map(({ readAgain: { doneAt = 0 } }) => doneAt)) : null,
    newEvents: own.reduce((sum, { storedCount, readAgain: { stored } }) => sum + storedCount - stored, 0),
  };
}

/** Marks the hours of [from, to) as read again, by a reading that began at `doneAt`. Epoch ms. */
export async function finishHours(
  tx: Queryable,
  { zoneId, at }: Pick<Backfill, "zoneId" | "at">,
  { from, to, doneAt }: { from: number; to: number; doneAt: number },
): Promise<void> {
  const { readAgain } = coverageWindows;
  const done = JSON.stringify({ doneAt } satisfies Partial<ReadAgain>);
  await tx
    .update(coverageWindows)
    .set({ readAgain: sql`${readAgain} || ${done}::jsonb` })
    .where(and(isIn({ zoneId, from, to }), sql`(${readAgain} ->> 'at')::bigint = ${at}`));
}

const KEY = names(coverageWindows.zoneId, coverageWindows.startsAt);

function isIn({ zoneId, from, to }: Omit<BackfillKey, "route">) {
  const { zoneId: zone, startsAt } = coverageWindows;
  return and(eq(zone, zoneId), gte(startsAt, new Date(startOfHour(from))), lt(startsAt, new Date(to)));
}

function readHours(db: Queryable, key: BackfillKey) {
  const { startsAt, storedCount, readAgain } = coverageWindows;
  return db
    .select({ startsAt, storedCount, readAgain })
    .from(coverageWindows)
    .where(isIn(key))
    .orderBy(asc(startsAt));
}
