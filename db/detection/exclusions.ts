/** Exclusions that were proposed, sources that people named as known, and plans that people saved. */
import { and, asc, desc, eq, inArray, isNull, lt, lte, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { DAY_MS } from "#lib/units.ts";
import type { ActionStates } from "#model/action-class.ts";
import type { ExclusionClause, ExclusionProposal } from "#model/advice.ts";
import { digest } from "#model/fingerprint.ts";
import type { KnownSource } from "#model/known-source.ts";
import type { PlanWatch } from "#model/review.ts";
import { DIRTY_RULES } from "#model/verdict.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { exclusions } from "../schema/alerts.ts";
import { wafEvents } from "../schema/events.ts";
import { reviewPlans, ruleBuckets } from "../schema/rules.ts";
import { knownSources } from "../schema/sources.ts";

const e = alias(wafEvents, "e");

/** A rule with fewer events on the clause in two days may be silent by chance. */
const FEWEST_BEFORE = 20;

interface Watching {
  readonly nowMs: number;
  /** Returns a regular expression for the URLs of a template, which the stage makes. */
  readonly toUrlPattern: (template: string) => string;
}

/** Keeps the clauses of a proposal. One that was followed is watched anew, because the rule misfires again. */
export async function storeProposal(
  db: Queryable,
  given: {
    readonly zoneId: number;
    readonly spikeId: number | null;
    readonly proposal: ExclusionProposal;
    readonly now: number;
  },
): Promise<void> {
  const { zoneId, spikeId, proposal, now } = given;
  const set = { spikeId, proposedAt: new Date(now), followedAt: null };
  for (const clause of proposal.clauses) {
    const { ruleIds, template, method, parameter } = clause;
    const key = digest([...ruleIds, template, method, parameter]);
    await db
      .insert(exclusions)
      .values({ zoneId, key, clause, ...set })
      .onConflictDoUpdate({ target: [exclusions.zoneId, exclusions.key], set });
  }
}

interface StoredExclusion {
  readonly id: number;
  readonly zoneId: number;
  readonly spikeId: number | null;
  readonly clause: ExclusionClause;
  /** Epoch ms. */
  readonly proposedAt: number;
  readonly followedAt: number | null;
}

/** Returns the exclusions that were proposed for a spike, the oldest first. */
export function readProposals(db: Queryable, spikeId: number) {
  const { clause, proposedAt, followedAt, id } = exclusions;
  const isOf = eq(exclusions.spikeId, spikeId);
  return db.select({ clause, proposedAt, followedAt }).from(exclusions).where(isOf).orderBy(asc(id));
}

/** Returns the newest exclusions of zones; null is every zone. */
export function listExclusions(
  db: Queryable,
  zoneIds: readonly number[] | null,
  limit: number,
): Promise<StoredExclusion[]> {
  const { id, zoneId, spikeId, clause, proposedAt, followedAt } = exclusions;
  return db
    .select({ id, zoneId, spikeId, clause, proposedAt: epochMs(proposedAt), followedAt: epochMs(followedAt) })
    .from(exclusions)
    .where(zoneIds === null ? undefined : inArray(zoneId, [...zoneIds]))
    .orderBy(desc(proposedAt), desc(id))
    .limit(limit);
}

/**
 * Marks exclusions as followed, and returns how many. A proposal counts as followed if its rule stopped no request on the path for
 * 24 hours, after ten or more a day in the two days before, while the zone's other events came at half their rate or more.
 * A rule that only logged must have no event. Method and parameter are not compared: a rule that still matches other
 * parameters of the path is not recognised, and a misfire that ended by itself looks the same.
 */
export async function watchExclusions(
  db: Queryable,
  zoneId: number,
  { nowMs, toUrlPattern, actions }: Watching & { readonly actions: ActionStates },
): Promise<number> {
  const dayAgo = new Date(nowMs - DAY_MS);
  const from = new Date(nowMs - 3 * DAY_MS);
  const open = await db
    .select({ id: exclusions.id, clause: exclusions.clause })
    .from(exclusions)
    .where(
      and(eq(exclusions.zoneId, zoneId), isNull(exclusions.followedAt), lt(exclusions.proposedAt, dayAgo)),
    );
  let followed = 0;
  for (const { id, clause } of open) {
    const { ruleIds, template } = clause;
    const isBefore = (time: SQL | typeof e.occurredAt | typeof ruleBuckets.startsAt) =>
      sql`${time} < ${dayAgo}`;
    const { rowCount } = await db.execute(sql`
      with seen as (
        select ${sql.raw(actions.toSql("e.action"))} in ('blocked', 'challenged') as stops, ${e.occurredAt} as at from ${wafEvents} ${e}
        where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${from} and ${e.occurredAt} < ${new Date(nowMs)}
          and ${isRuleOf(ruleIds)} and ${isOnPath(template, toUrlPattern)}),
      counted as (
        select stops, count(*) filter (where ${isBefore(sql`at`)}) as before, max(at) as last from seen group by grouping sets ((stops), ())),
      judged as (
        select last from counted where before >= ${FEWEST_BEFORE} and stops is distinct from false order by stops nulls last limit 1),
      others as (
        select coalesce(sum(${ruleBuckets.total}) filter (where ${isBefore(ruleBuckets.startsAt)}), 0) / 2 as before,
          coalesce(sum(${ruleBuckets.total}) filter (where not ${isBefore(ruleBuckets.startsAt)}), 0) as after
        from ${ruleBuckets} where ${ruleBuckets.zoneId} = ${zoneId} and ${ruleBuckets.width} = 3600
          and ${ruleBuckets.startsAt} >= ${from} and ${ruleBuckets.startsAt} < ${new Date(nowMs)}
          and ${ruleBuckets.ruleId} <> all (${sql.param(ruleIds)}::text[]))
      update ${exclusions} set followed_at = judged.last from judged, others
      where ${exclusions.id} = ${id} and judged.last < ${dayAgo} and others.after > 0 and others.after >= others.before / 2`);
    followed += rowCount ?? 0;
  }
  return followed;
}

/** Events of other rules on the path of an exclusion within 24 hours: what an attacker may use it for. */
export async function countOnPath(
  db: Queryable,
  { zoneId, clause: { ruleIds, template } }: Pick<StoredExclusion, "zoneId" | "clause">,
  { nowMs, toUrlPattern }: Watching,
): Promise<{ readonly events: number; readonly suspicious: number }> {
  const { rows } = await db.execute<{ events: number; suspicious: number }>(sql`
    with day as (
      select ${e.ip} as ip, ${e.ruleId} as rule, ${isOnPath(template, toUrlPattern)} as here, ${isRuleOf(ruleIds)} as own
      from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${new Date(nowMs - DAY_MS)} and ${e.occurredAt} < ${new Date(nowMs)}),
    dirty as (select ip from day where not here and ip <> '' group by ip having count(distinct rule) >= ${DIRTY_RULES})
    select count(*)::integer as events, count(*) filter (where ip in (select ip from dirty))::integer as suspicious
    from day where here and own is not true`);
  return rows[0] ?? { events: 0, suspicious: 0 };
}

function isRuleOf(ruleIds: readonly string[]): SQL {
  return sql`${e.ruleId} = any (${sql.param([...ruleIds])}::text[])`;
}

function isOnPath(template: string | null, toUrlPattern: Watching["toUrlPattern"]): SQL {
  return template === null ? sql`true` : sql`coalesce(${e.url} ~ ${toUrlPattern(template)}, false)`;
}

export type KnownSourceRow = typeof knownSources.$inferSelect;
type NewKnownSource = Omit<typeof knownSources.$inferInsert, "createdAt">;

/** Returns every stored known source, also those that have ended, the oldest first. */
export function listKnownSources(db: Queryable): Promise<KnownSourceRow[]> {
  return db.select().from(knownSources).orderBy(asc(knownSources.id));
}

export function toKnownSource({ kind, pattern, zoneId, reason, expiresAt }: KnownSourceRow): KnownSource {
  const zoneIds = zoneId === null ? null : [zoneId];
  return { kind, pattern, zoneIds, reason, untilMs: expiresAt?.getTime() ?? null };
}

/** Lets no other transaction add a known source before this one ends, so that their number stays within the limit. */
export async function lockKnownSources(tx: Queryable): Promise<void> {
  await tx.execute(sql`lock table ${knownSources} in share row exclusive mode`);
}

/**
 * Deletes the same source of the same zone, and every source that has ended, because neither counts for the limits. Returns
 * the ids of the same source.
 */
export async function deleteReplaced(
  tx: Queryable,
  { kind, pattern, zoneId }: NewKnownSource,
  now: Date,
): Promise<number[]> {
  const { id, expiresAt, ...known } = knownSources;
  await tx.delete(knownSources).where(lte(expiresAt, now));
  const isSame = sql`(${known.kind}, ${known.pattern}) = (${kind}, ${pattern})
    and ${known.zoneId} is not distinct from ${zoneId ?? null}::integer`;
  return (await tx.delete(knownSources).where(isSame).returning({ id })).map((one) => one.id);
}

export async function insertKnownSource(tx: Queryable, known: NewKnownSource): Promise<KnownSourceRow> {
  const [row] = await tx.insert(knownSources).values(known).returning();
  if (row === undefined) throw new Error("an insert returned no row");
  return row;
}

/** Deletes a known source and returns it; null if there is none. */
export async function deleteKnownSource(tx: Queryable, id: number): Promise<KnownSourceRow | null> {
  const [row] = await tx.delete(knownSources).where(eq(knownSources.id, id)).returning();
  return row ?? null;
}

export type ReviewPlanRow = typeof reviewPlans.$inferSelect;
type NewReviewPlan = Omit<typeof reviewPlans.$inferInsert, "deletedAt" | "watch">;

/**
 * Returns the saved plans of zones, the newest first; null is every zone. `id`: only this one. `withDeleted`: also those that were
 * deleted. `onlyHit`: only those with a rule that blocks or lately blocked more visitors than the plan said.
 */
export function listReviewPlans(
  db: Queryable,
  zoneIds: readonly number[] | null,
  {
    id,
    withDeleted = false,
    onlyHit = false,
  }: { id?: number; withDeleted?: boolean; onlyHit?: boolean } = {},
): Promise<ReviewPlanRow[]> {
  const isOf = zoneIds === null ? undefined : inArray(reviewPlans.zoneId, [...zoneIds]);
  const isAsked = id === undefined ? undefined : eq(reviewPlans.id, id);
  const isKept = withDeleted ? undefined : isNull(reviewPlans.deletedAt);
  const isHit = onlyHit ? sql`jsonb_array_length(${reviewPlans.watch} -> 'hits') > 0` : undefined;
  return db
    .select()
    .from(reviewPlans)
    .where(and(isOf, isAsked, isKept, isHit))
    .orderBy(desc(reviewPlans.id));
}

/** Saves a plan. Returns null if the zone has `most` already. */
export async function insertReviewPlan(
  db: Queryable,
  plan: NewReviewPlan,
  most: number,
): Promise<ReviewPlanRow | null> {
  const ofZone = and(eq(reviewPlans.zoneId, plan.zoneId), isNull(reviewPlans.deletedAt));
  if ((await db.$count(reviewPlans, ofZone)) >= most) return null;
  const [row] = await db.insert(reviewPlans).values(plan).returning();
  return row ?? null;
}

/** Marks a plan as deleted and ends its hits. `forgetDeletedPlans` removes it. */
export async function deleteReviewPlan(
  db: Queryable,
  { id, watch }: ReviewPlanRow,
  now: number,
): Promise<void> {
  const hits = watch?.hits.map((hit) => ({ ...hit, endedAt: hit.endedAt ?? now })) ?? [];
  const ended = watch === null ? null : { ...watch, at: now, hits };
  await db
    .update(reviewPlans)
    .set({ deletedAt: new Date(now), watch: ended })
    .where(eq(reviewPlans.id, id));
}

/** Removes the plans that were deleted before a time (epoch ms). */
export async function forgetDeletedPlans(db: Queryable, beforeMs: number): Promise<void> {
  await db.delete(reviewPlans).where(lt(reviewPlans.deletedAt, new Date(beforeMs)));
}

/** Stores what was seen of a plan, unless it was deleted or another process has seen more of it. */
export async function storePlanWatch(db: Queryable, id: number, watch: PlanWatch): Promise<void> {
  const isOlder = sql`coalesce((${reviewPlans.watch} ->> 'at')::float8, 0) <= ${watch.at}::float8`;
  await db
    .update(reviewPlans)
    .set({ watch })
    .where(and(eq(reviewPlans.id, id), isNull(reviewPlans.deletedAt), isOlder));
}
