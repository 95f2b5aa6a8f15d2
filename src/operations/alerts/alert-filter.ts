import { z } from "zod";
import { type AlertFilter, readAlert } from "#db/alerting/alert-reports.ts";
import { ALERT_KINDS, SEVERITIES } from "#model/kinds.ts";
import { maySee, oneOrMore, RowId, RulePattern, Time, visibleZones, ZoneId } from "../fields.ts";
import type { Asked } from "../operation.ts";
import { Refusal } from "../refusal.ts";
import { requireZone } from "../require-known.ts";
import { checkOrder } from "../span.ts";

/** The members of an input that select alerts. */
export const ALERT_FILTER = {
  zone: ZoneId.optional().describe("Only alerts of this shield zone."),
  rule: RulePattern.optional().describe("A rule id (942100), or a family of rules with * at the end (942*)."),
  severity: oneOrMore(SEVERITIES).optional(),
  kind: oneOrMore(ALERT_KINDS).optional().describe("self: alerts of Longwatch about itself."),
  incident: RowId.optional().describe("Only the alerts of the rules that are part of this incident's alert."),
  since: Time.optional().describe("Alerts that fired at this time or later."),
  until: Time.optional().describe("Alerts that fired before this time."),
};

type Wanted = z.output<z.ZodObject<typeof ALERT_FILTER>>;

/** @throws {Refusal} 403 for a zone of others, 422 for a zone or an incident that does not exist */
export async function readFilter(asked: Asked, wanted: Wanted): Promise<Omit<AlertFilter, "limit">> {
  const { zone, rule, severity, kind, incident, since, until } = wanted;
  checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
  const zoneIds = visibleZones(asked.caller, zone);
  if (zone !== undefined) await requireZone(asked, zone);
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
