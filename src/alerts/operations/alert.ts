/** An alert as the API shows it, and the filter of its list. */
import { z } from "zod";
import { assigneeOf, findMute } from "#alerts/rules/alert-history.ts";
import { parseDetails, Transitions, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import {
  findAlertSilence,
  type SignedSilence,
  toSilencedAlert,
  toSilences,
  wouldMute,
} from "#alerts/rules/silence.ts";
import { type AlertFilter, type ReportedAlert, readAlert } from "#db/alerts/alert-reports.ts";
import type { AlertRow } from "#db/alerts/alerts.ts";
import { readSilences } from "#db/alerts/silences.ts";
import type { Queryable } from "#db/client.ts";
import { ALERT_KINDS, ALERT_STATES, MUTES, SEVERITIES, VERDICTS } from "#model/kinds.ts";
import type { Caller } from "#operations/caller.ts";
import {
  IsoTime,
  ListZones,
  maySee,
  Name,
  notFound,
  oneOrMore,
  RowId,
  RulePattern,
  Text,
  Time,
  toIso,
  toIsoOrNull,
} from "#operations/fields.ts";
import type { QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { pickZones } from "#operations/require-known.ts";
import { checkOrder } from "#operations/span.ts";
import { summariseAlert } from "./mask-message.ts";

/** The silence that mutes an alert: by whom, until when and why. */
export const MutedBy = z.object({ id: z.number().int(), expiresAt: IsoTime, createdBy: Text, reason: Text });

export const Alert = z
  .object({
    id: z.number().int(),
    state: z.enum(ALERT_STATES),
    severity: z.enum(SEVERITIES),
    kind: Name.describe(`One of ${ALERT_KINDS.join(", ")}. An alert of kind self is about Longwatch itself.`),
    zoneId: z.number().int().nullable(),
    zoneName: Name.nullable().describe(
      "The zone's name in the configuration file at the time of the latest message.",
    ),
    ruleId: Name.nullable(),
    ruleTitle: Name.nullable().describe("Title of a managed rule; null for other rules."),
    headline: Text.nullable().describe("The text may contain text from event logs. Escape it."),
    verdict: z
      .object({ said: z.enum(VERDICTS), title: Text, odds: z.number() })
      .nullable()
      .describe("What the latest message says the alert is, with the odds of its likeliest class."),
    firedAt: IsoTime,
    acknowledgedAt: IsoTime.nullable(),
    acknowledgedBy: Text.nullable(),
    assignedTo: Text.nullable().describe("Who has the alert, if somebody was named."),
    resolvedAt: IsoTime.nullable(),
    quietSince: IsoTime.nullable().describe(
      "Set while an open alert's count is an everyday one again: the end of the last minute that was not quiet.",
    ),
    incidentId: z
      .number()
      .int()
      .nullable()
      .describe(
        "The alert that the rule is part of, of an incident or of a rule with the same requests: that one notifies, this one does not.",
      ),
    unsent: z
      .enum(MUTES)
      .nullable()
      .describe(
        "The reason, apart from a silence, why no channel is notified of an open alert. few-addresses: a spike of one rule that few addresses send is only listed. first-day: a spike of one rule in its zone's first day is only listed. Null if a channel was notified.",
      ),
    fingerprint: Name,
    silence: MutedBy.nullable().describe(
      "The silence that mutes the alert now, the one that ends last. Null for a resolved alert.",
    ),
    transition: z
      .number()
      .int()
      .describe("Number of the latest transition. The first transition has number 1."),
    links: z
      .array(z.object({ title: Name, url: Name }))
      .describe("Runbooks and dashboards that the configuration file names for such alerts."),
  })
  .meta({ id: "Alert" });
export type Alert = z.infer<typeof Alert>;

/** The inputs of alerts besides their rows. */
interface AlertView {
  readonly now: number;
  /** The silences in force. */
  readonly silences: readonly SignedSilence[];
}

export async function readAlertView(db: Queryable, now: number): Promise<AlertView> {
  return { now, silences: toSilences(await readSilences(db, { fromMs: now, toMs: now })) };
}

export function toAlert(row: ReportedAlert, { silences, now }: AlertView): Alert {
  const { firedAt, acknowledgedAt, resolvedAt, links, ...rest } = summariseAlert(row);
  const { verdict = null } = parseDetails(row.details).message ?? {};
  // A history that cannot be read keeps no alert from the list.
  const history = { transitions: Transitions.safeParse(row.transitions).data ?? [] };
  const silence = row.state === "resolved" ? null : findAlertSilence(silences, toSilencedAlert(row), now);
  return {
    ...rest,
    ruleTitle: ruleTitle(row.ruleId),
    verdict: verdict && { said: verdict.said, title: verdict.title, odds: verdict.odds },
    firedAt: toIso(firedAt),
    acknowledgedAt: toIsoOrNull(acknowledgedAt),
    resolvedAt: toIsoOrNull(resolvedAt),
    quietSince: row.quietSince?.toISOString() ?? null,
    silence: silence === null ? null : toMutedBy(silence),
    incidentId: row.incidentAlertId,
    assignedTo: assigneeOf(history),
    unsent: findMute(history),
    transition: row.transition,
    links: [...(links ?? [])],
  };
}

export function toMutedBy({ id, expiresAtMs, createdBy, reason }: SignedSilence): z.infer<typeof MutedBy> {
  return { id, expiresAt: toIso(expiresAtMs), createdBy, reason };
}

/** @throws {Refusal} 404 if there is no such alert, or the caller may not see it */
export async function findAlert(db: Queryable, caller: Caller, id: number): Promise<ReportedAlert> {
  const row = await readAlert(db, id);
  if (row === null || !maySee(caller, row.zoneId)) throw notFound(`alert ${id}`);
  return row;
}

/** The members of an input that select alerts. */
export const ALERT_FILTER = {
  zone: ListZones,
  rule: RulePattern.optional().describe("A rule id (942100), or a family of rules with * at the end (942*)."),
  severity: oneOrMore(SEVERITIES).optional(),
  kind: oneOrMore(ALERT_KINDS).optional().describe("self: alerts of Longwatch about itself."),
  incident: RowId.optional().describe("Only the alerts of the rules that are part of this incident's alert."),
  since: Time.optional().describe("Alerts that fired at this time or later."),
  until: Time.optional().describe("Alerts that fired before this time."),
};

type Wanted = z.output<z.ZodObject<typeof ALERT_FILTER>>;

/** @throws {Refusal} 403 for a zone of others, 422 for a zone or an incident that does not exist */
export async function readFilter(asked: QueryContext, wanted: Wanted): Promise<Omit<AlertFilter, "limit">> {
  const { zone, rule, severity, kind, incident, since, until } = wanted;
  checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
  const zoneIds = await pickZones(asked, zone);
  const row = incident === undefined ? null : await readAlert(asked.db, incident);
  if (incident !== undefined && (row === null || !maySee(asked.caller, row.zoneId))) {
    const mistake = {
      field: "incident",
      value: `"${incident}"`,
      rule: "must be the number of a stored alert",
    };
    throw new Refusal(422, { slug: "unknown-incident", mistakes: [mistake] });
  }
  return {
    zoneIds,
    rule,
    severities: severity,
    kinds: kind,
    incidentId: incident,
    sinceMs: since,
    untilMs: until,
  };
}

/** A time in which a silence was in force for an alert. Epoch ms. */
interface Silenced {
  readonly silence: SignedSilence;
  readonly fromMs: number;
  /** Null while it lasts. */
  readonly toMs: number | null;
}

/**
 * Returns when silences muted an open alert: those that match it as it is now, and those that muted a transition of it.
 * A silence mutes nothing before it was made, although it may begin earlier.
 */
export function listSilenced(row: AlertRow, silences: readonly SignedSilence[], nowMs: number): Silenced[] {
  const alert = toSilencedAlert(row);
  const [firedAtMs, resolvedAtMs] = [row.firedAt.getTime(), row.resolvedAt?.getTime() ?? null];
  const known = new Set(toAlertRecord(row).transitions.map(({ silencedBy }) => silencedBy));
  const openUntilMs = resolvedAtMs ?? nowMs;
  return silences
    .filter(({ id, matchers }) => known.has(id) || wouldMute(matchers, alert))
    .map((silence) => {
      const { startsAtMs, expiresAtMs, createdAtMs } = silence;
      const toMs = Math.min(expiresAtMs, openUntilMs);
      const isOver = expiresAtMs <= nowMs || resolvedAtMs !== null;
      return {
        silence,
        fromMs: Math.max(startsAtMs, createdAtMs <= nowMs ? createdAtMs : startsAtMs, firedAtMs),
        toMs: isOver ? toMs : null,
      };
    })
    .filter(({ fromMs, toMs }) => fromMs < (toMs ?? nowMs + 1))
    .sort((one, other) => one.fromMs - other.fromMs);
}
