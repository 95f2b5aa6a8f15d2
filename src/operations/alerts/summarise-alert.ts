import type { AlertRow } from "#db/alerting/alerts.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { gravestSeverity } from "#stages/alerting/alert-history.ts";
import { toAlertRecord } from "#stages/alerting/alert-record.ts";
import { toSafeLinks } from "#stages/delivery/message/safe-link.ts";

/** A short form of an alert; times in epoch ms. Texts come from events: untrusted. */
export interface AlertSummary {
  readonly id: number;
  readonly state: AlertRow["state"];
  readonly severity: AlertMessage["severity"];
  readonly kind: string;
  readonly zoneId: number | null;
  /** The name in the last message; null for a zone without a name. */
  readonly zoneName: string | null;
  readonly ruleId: string | null;
  readonly firedAt: number;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly resolvedAt: number | null;
  readonly fingerprint: string;
  /** Null if the stored message cannot be read. */
  readonly headline: string | null;
  /** The links of the configuration file. */
  readonly links: AlertMessage["links"];
}

export function summariseAlert(row: AlertRow): AlertSummary {
  const { id, state, kind, zoneId, ruleId, acknowledgedBy, fingerprint } = row;
  const message = parseDetails(row.details).message;
  return {
    id,
    state,
    severity: message?.severity ?? gravestSeverity(toAlertRecord(row)),
    kind,
    zoneId,
    zoneName: message?.zoneName ?? null,
    ruleId,
    firedAt: row.firedAt.getTime(),
    acknowledgedAt: row.acknowledgedAt?.getTime() ?? null,
    acknowledgedBy,
    resolvedAt: row.resolvedAt?.getTime() ?? null,
    fingerprint,
    headline: message?.headline ?? null,
    links: toSafeLinks(message?.links ?? []).map(({ title, href }) => ({ title, url: href })),
  };
}
