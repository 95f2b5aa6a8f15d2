import { z } from "zod";
import { type ReportedAlert, readAlert } from "#db/alerting/alert-reports.ts";
import { readSilences } from "#db/alerting/silences.ts";
import type { Queryable } from "#db/client.ts";
import { ALERT_KINDS, ALERT_STATES, MUTES, SEVERITIES, VERDICTS } from "#model/kinds.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { findMute } from "#stages/alerting/alert-history.ts";
import { Transitions } from "#stages/alerting/alert-record.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { findAlertSilence, type SignedSilence, toSilences } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";
import type { Caller } from "../caller.ts";
import { IsoTime, maySee, Name, notFound, Text, toIso, toIsoOrNull } from "../fields.ts";
import { summariseAlert } from "./summarise-alert.ts";

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
export interface AlertView {
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
    // A history that cannot be read keeps no alert from the list.
    unsent: findMute({ transitions: Transitions.safeParse(row.transitions).data ?? [] }),
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
