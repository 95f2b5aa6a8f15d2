import { MINUTE_MS } from "#lib/units.ts";
import { SOURCES_RULE, type StoredSources } from "#model/stored-sources.ts";
import { toMinute } from "../stored-episode.ts";
import { strongestOf } from "./follow-incidents.ts";
import type { Incident, PastIncident } from "./incident.ts";
import type { IncidentEvidence } from "./incident-evidence.ts";

/** The members of a row that say how an incident is remembered. */
export interface StoredIncident {
  readonly incident: string;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  readonly lastActiveAt: Date;
  readonly severity: Incident["severity"];
  readonly sources: StoredSources | null;
}

const toDate = (minute: number) => new Date(minute * MINUTE_MS);
/** The count is an everyday one again if nothing has fired for so many minutes. */
const CALM_MINUTES = 3;

/** Returns the incident of a row; null if the row holds none. A row of an earlier version has no name. */
export function toIncident({
  incident,
  openedAt,
  lastActiveAt,
  severity,
  sources,
}: StoredIncident): Incident | null {
  if (sources === null || sources.findings.length === 0) return null;
  const lastFiredAt = toMinute(lastActiveAt);
  return {
    name: incident,
    openedAt: toMinute(openedAt),
    lastFiredAt,
    severity,
    attackers: sources.findings.map((one) => ({
      ...one,
      role: one.role ?? "opened",
      lastFiredAt: one.lastFiredAt || lastFiredAt,
    })),
    unnamed: sources.unnamed ?? 0,
  };
}

/** Returns the incident of a row that was closed; null if the row holds none. */
export function toPastIncident(row: StoredIncident): PastIncident | null {
  const incident = toIncident(row);
  return incident === null || row.closedAt === null
    ? null
    : { ...incident, closedAt: toMinute(row.closedAt) };
}

/** How far an incident was judged. Minutes are numbered since the epoch. */
export interface JudgedSpan {
  /** The end of the minutes that are over. */
  readonly judgedThrough: number;
  /** The end of the minutes that are counted: the running one may be among them. */
  readonly countedTo: number;
  readonly closedAt: number | null;
  /** A time that lies after it is stored as it. Epoch ms. */
  readonly nowMs: number;
}

/** Returns the row of an incident. */
export function toIncidentRow(
  incident: Incident,
  evidence: Pick<IncidentEvidence, "grown" | "rules" | "events" | "isMasked" | "known"> & {
    readonly firstSeen?: number | null | undefined;
  },
  { judgedThrough, countedTo, closedAt, nowMs }: JudgedSpan,
) {
  const toPast = (minute: number) => new Date(Math.min(minute * MINUTE_MS, nowMs));
  const { name, openedAt, lastFiredAt, severity, attackers, unnamed } = incident;
  const [first] = attackers;
  const strongest = strongestOf(incident, countedTo - 1);
  if (first === undefined || strongest === undefined) throw new Error(`incident ${name} has no attacker`);
  const { windowMinutes, count, usual, threshold, score } = strongest;
  const isCalm = judgedThrough - lastFiredAt >= CALM_MINUTES;
  const { grown, rules, events, isMasked, known = 0, firstSeen = null } = evidence;
  return {
    ruleId: SOURCES_RULE,
    incident: name,
    kind: "sources" as const,
    openedAt: toPast(openedAt),
    closedAt: closedAt === null ? null : toDate(closedAt),
    lastActiveAt: toPast(lastFiredAt),
    judgedThrough: toDate(judgedThrough),
    baseline: usual,
    threshold,
    score,
    peak: count,
    windowCount: isCalm ? 0 : count,
    windowMinutes,
    severity,
    sources: {
      kind: first.kind,
      findings: [...attackers],
      unnamed,
      grown,
      rules,
      events,
      isMasked,
      known,
      firstSeen,
    } satisfies StoredSources,
  };
}
