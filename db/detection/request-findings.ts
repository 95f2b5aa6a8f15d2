/** Reads incidents with their marks and verdicts, and usual senders: from them follows whose a request is. */
import { asc, eq, inArray, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { MINUTE_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import type { Mark, SourceKind, VerdictWord } from "#model/kinds.ts";
import { RULE_SPIKE_KINDS } from "#model/kinds.ts";
import type { AnsweredBlockList, RequestFinding } from "#model/review.ts";
import type { StoredSources, UsualValue } from "#model/stored-sources.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { platformHealth } from "../schema/coverage.ts";
import { erasures, pseudonymisedDays } from "../schema/privacy.ts";
import { judgedHours, zoneUsual } from "../schema/sources.ts";
import { spikes, verdicts } from "../schema/spikes.ts";
import { readVerdicts } from "./verdicts.ts";

const s = alias(spikes, "s");
const v = alias(verdicts, "v");

const SAYS: Partial<Record<Mark | VerdictWord, RequestFinding["says"]>> = {
  attack: "hostile",
  scanner: "hostile",
  "broken-client": "machine",
  crawler: "machine",
  misfire: "visitor",
};
const KINDS: Readonly<Record<SourceKind, RequestFinding["kind"]>> = {
  rules_per_ip: "ip",
  ips_per_ja4: "ja4",
  ips_per_url: "path",
  ips_per_ua: "ua",
  ips_per_asn: "asn",
};

interface FoundSpike extends Record<string, unknown> {
  readonly ruleId: string;
  readonly sources: StoredSources | null;
  readonly from: number;
  readonly to: number;
  readonly mark: Mark | null;
  readonly said: VerdictWord | null;
}

/**
 * Returns what the spikes of a zone that were open in a span say: a person's mark, else the latest verdict. Of an incident each attacker from
 * its first to its latest minute, of a rule's spike the rule. An unclear verdict says nothing, and neither does a spike that is part of an incident.
 */
export async function readRequestFindings(
  db: Queryable,
  zoneId: number,
  { from, to }: Span,
): Promise<RequestFinding[]> {
  const { rows } = await db.execute<FoundSpike>(sql`
    select ${s.ruleId} as "ruleId", ${s.sources} as sources, ${s.mark} as mark,
      ${epochMs(s.openedAt)} - ${s.windowMinutes} * ${MINUTE_MS} as "from", ${epochMs(s.lastActiveAt)} as "to",
      (select ${v.said} from ${verdicts} ${v} where ${v.spikeId} = ${s.id} order by ${v.judgedAt} desc limit 1) as said
    from ${spikes} ${s}
    where ${s.zoneId} = ${zoneId} and ${s.openedAt} < ${new Date(to)} and (${s.closedAt} is null or ${s.closedAt} > ${new Date(from)})
      and not ${s.isShadow} and ${s.kind} in ('spike', 'new-rule', 'sources') and ${s.memberOf} is null`);
  return rows.flatMap((row): RequestFinding[] => {
    const says = SAYS[row.mark === null || row.mark === "noise" ? (row.said ?? "unclear") : row.mark];
    if (says === undefined) return [];
    if (row.sources === null) return [{ kind: "rule", key: row.ruleId, from: row.from, to: row.to, says }];
    return row.sources.findings
      .filter(({ key }) => key !== "" && key !== "erased")
      .map(({ kind, key, since, lastFiredAt, windowMinutes }) => ({
        kind: KINDS[kind],
        key,
        from: (since - windowMinutes) * MINUTE_MS,
        to: Math.max(lastFiredAt * MINUTE_MS, row.to),
        says,
      }));
  });
}

/** Returns the networks and JA4 fingerprints that became usual in a zone before a time, with that moment. */
export async function readUsualSenders(
  db: Queryable,
  zoneId: number,
  beforeMs: number,
): Promise<UsualValue[]> {
  const { dimension, value, since } = zoneUsual;
  const { rows } = await db.execute<Record<string, unknown> & UsualValue>(sql`
    select ${dimension} as dimension, ${value} as value, ${epochMs(since)} as since from ${zoneUsual}
    where ${zoneUsual.zoneId} = ${zoneId} and ${dimension} in ('asn', 'ja4') and ${since} < ${new Date(beforeMs)}`);
  return rows.map(({ dimension, value, since }) => ({ dimension, value, since }));
}

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

/** The state of a zone's events and of its privacy, on which its block list depends. */
interface BlockSource {
  /** The end of the newest minute whose events the detectors have judged, epoch ms; null if there is none. */
  readonly judgedThrough: number | null;
  /** Changes whenever an address may have been erased or replaced by a pseudonym. */
  readonly privacy: string;
  /** The last list that any process answered. */
  readonly answered: AnsweredBlockList | null;
}

export async function readBlockSource(db: Queryable, zoneId: number): Promise<BlockSource> {
  const { rows } = await db.execute<{ [Key in keyof BlockSource]: BlockSource[Key] }>(sql`
    select (select ${epochMs(sql`max(${judgedHours.rulesThrough})`)} from ${judgedHours}
        where ${judgedHours.zoneId} = ${zoneId}::integer) as "judgedThrough",
      concat_ws(' ', (select count(*) from ${erasures}), (select max(${erasures.requestedAt}) from ${erasures}),
        (select max(${erasures.endedAt}) from ${erasures}), (select max(${pseudonymisedDays.doneAt}) from ${pseudonymisedDays})) as privacy,
      (select ${platformHealth.blockList} from ${platformHealth} where ${platformHealth.zoneId} = ${zoneId}::integer) as answered`);
  return rows[0] ?? { judgedThrough: null, privacy: "", answered: null };
}

/** Notes the block list of a zone that was answered, so that every process knows its age. */
export async function noteBlockList(
  db: Queryable,
  zoneId: number,
  blockList: AnsweredBlockList,
): Promise<void> {
  await db.update(platformHealth).set({ blockList }).where(eq(platformHealth.zoneId, zoneId));
}
