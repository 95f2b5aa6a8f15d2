import { asc, desc, inArray, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { cleanText, MAX_TEXT_CHARS } from "#lib/clean-text.ts";
import { DAY_MS } from "#lib/units.ts";
import { RULE_SPIKE_KINDS, VERDICT_LOOKS, type VerdictLook } from "#model/kinds.ts";
import { LOOK_AFTER_MS, type StoredVerdict } from "#model/verdict.ts";
import type { Queryable } from "../client.ts";
import { spikes } from "../schema/spikes.ts";
import { verdicts } from "../schema/verdicts.ts";
import type { SpikeRow } from "./spikes.ts";

const s = alias(spikes, "s");
const v = alias(verdicts, "v");

/** Spikes older than this are not looked at. */
const LOOKED_AT_MS = 2 * DAY_MS;

/**
 * Stores what a spike is at one look. Returns false and changes nothing if that look is stored already, because another
 * replica was faster.
 */
export async function storeVerdict(
  db: Queryable,
  { id, zoneId }: { readonly id: number; readonly zoneId: number },
  verdict: StoredVerdict,
): Promise<boolean> {
  // JSON in Postgres holds neither NUL nor half a character, which a request may.
  const clean = JSON.parse(JSON.stringify(verdict), (_key, value: unknown) =>
    typeof value === "string" ? cleanText(value, MAX_TEXT_CHARS) : value,
  ) as StoredVerdict;
  const { look, said, judgedAt } = clean;
  const stored = await db
    .insert(verdicts)
    .values({ spikeId: id, zoneId, look, said, judgedAt: new Date(judgedAt), verdict: clean })
    .onConflictDoNothing({ target: [verdicts.spikeId, verdicts.look] })
    .returning({ id: verdicts.spikeId });
  return stored.length > 0;
}

/** Returns the verdicts of each of these spikes, the oldest look first. Spikes without any are left out. */
export async function readVerdicts(
  db: Queryable,
  spikeIds: readonly number[],
): Promise<ReadonlyMap<number, readonly StoredVerdict[]>> {
  if (spikeIds.length === 0) return new Map();
  const rows = await db
    .select({ spikeId: verdicts.spikeId, verdict: verdicts.verdict })
    .from(verdicts)
    .where(inArray(verdicts.spikeId, [...spikeIds]))
    .orderBy(asc(verdicts.spikeId), asc(verdicts.judgedAt));
  const bySpike = Map.groupBy(rows, ({ spikeId }) => spikeId);
  return new Map(Array.from(bySpike, ([id, ofSpike]) => [id, ofSpike.map(({ verdict }) => verdict)]));
}

export type DueLook = Readonly<{ spike: SpikeRow; look: VerdictLook }>;

/**
 * Returns the looks that are due: of each spike the latest one whose time has come, unless it or a later one is stored. Looks
 * before it are left out, because the events that they would have seen are in it. Incidents come first and members of
 * incidents last; of both the open ones first, the newest first. Spikes that were found late come after all others: they notify
 * nobody, but an exclusion may follow from them.
 */
export async function findDueLooks(db: Queryable, nowMs: number, limit: number): Promise<DueLook[]> {
  // The latest look first. A spike may open later than now, by the clock of another process.
  const cases = VERDICT_LOOKS.slice(1)
    .toReversed()
    .map((look) => sql`when ${s.openedAt} <= ${new Date(nowMs - LOOK_AFTER_MS[look])} then ${look}`);
  const look = sql<VerdictLook>`case ${sql.join(cases, sql` `)} else ${VERDICT_LOOKS[0]} end`;
  const placeOf = (one: SQLWrapper) => sql`array_position(${sql.param([...VERDICT_LOOKS])}::text[], ${one})`;
  const since = new Date(nowMs - LOOKED_AT_MS);
  return db
    .select({ spike: s, look })
    .from(s)
    .where(
      // The second condition has an index.
      sql`${s.openedAt} > ${since} and (${s.closedAt} is null or ${s.closedAt} > ${since})
        and ${inArray(s.kind, [...RULE_SPIKE_KINDS, "sources"])} and not ${s.isShadow}
        and not exists (select from ${verdicts} ${v} where ${v.spikeId} = ${s.id} and ${placeOf(v.look)} >= ${placeOf(look)})`,
    )
    .orderBy(
      sql`${s.isLate}, ${s.kind} = 'sources' desc, ${s.memberOf} is null desc, ${s.closedAt} is null desc`,
      desc(s.openedAt),
      asc(s.id),
    )
    .limit(limit);
}
