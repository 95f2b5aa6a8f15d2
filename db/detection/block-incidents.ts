/** Reads incidents with their attackers and verdicts for a block list. */
import { asc, inArray, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { RULE_SPIKE_KINDS } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { erasures, pseudonymisedDays } from "../schema/privacy.ts";
import { judgedHours } from "../schema/sources.ts";
import { spikes } from "../schema/spikes.ts";
import { readVerdicts } from "./verdicts.ts";

const s = alias(spikes, "s");

/** Returns the incidents of a zone, rules that spike by themselves among them, with events after `sinceMs`, each with its verdicts, the oldest first. */
export async function readBlockIncidents(db: Queryable, zoneId: number, sinceMs: number) {
  const rows = await db
    .select({
      id: s.id,
      openedAt: epochMs(s.openedAt),
      lastActiveAt: epochMs(s.lastActiveAt),
      mark: s.mark,
      sources: s.sources,
      ruleId: s.ruleId,
    })
    .from(s)
    .where(
      sql`${s.zoneId} = ${zoneId}::integer and ${inArray(s.kind, [...RULE_SPIKE_KINDS, "sources"])} and not ${s.isShadow}
        and ${s.memberOf} is null and ${s.lastActiveAt} >= ${new Date(sinceMs)}`,
    )
    .orderBy(asc(s.openedAt), asc(s.id));
  const ids = rows.map(({ id }) => id);
  const judged = await readVerdicts(db, ids);
  const raised = await db
    .select({ spikeId: alerts.spikeId, id: alerts.id })
    .from(alerts)
    .where(inArray(alerts.spikeId, ids.length === 0 ? [0] : ids))
    .orderBy(asc(alerts.id));
  const alertOf = new Map(raised.map(({ spikeId, id }) => [spikeId, id]));
  return rows.map(({ id, sources, ...row }) => ({
    ...row,
    alertId: alertOf.get(id) ?? null,
    attackers: sources?.findings ?? [],
    verdicts: judged.get(id) ?? [],
  }));
}

/** How current the source of a zone's list is. */
interface BlockSource {
  /** The end of the newest minute whose events the detectors have judged, epoch ms; null if there is none. */
  readonly judgedThrough: number | null;
  /** Changes whenever an address may have been erased or replaced by a pseudonym. */
  readonly privacy: string;
}

export async function readBlockSource(db: Queryable, zoneId: number): Promise<BlockSource> {
  const { rows } = await db.execute<{ [Key in keyof BlockSource]: BlockSource[Key] }>(sql`
    select (select ${epochMs(sql`max(${judgedHours.rulesThrough})`)} from ${judgedHours}
        where ${judgedHours.zoneId} = ${zoneId}::integer) as "judgedThrough",
      concat_ws(' ', (select count(*) from ${erasures}), (select max(${erasures.requestedAt}) from ${erasures}),
        (select max(${erasures.endedAt}) from ${erasures}), (select max(${pseudonymisedDays.doneAt}) from ${pseudonymisedDays})) as privacy`);
  return rows[0] ?? { judgedThrough: null, privacy: "" };
}
