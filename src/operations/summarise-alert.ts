import type { AlertRow } from "../../db/alerting/alerts.ts";
import { toAlertRecord } from "../alerting/to-alert-record.ts";
import { toSafeLinks } from "../delivery/message/safe-link.ts";
import { type AlertMessage, alertMessage } from "../model/alert-message.ts";
import { gravestSeverity } from "../model/alert-record.ts";

/** An alert in short; times in epoch ms. Texts are as they were logged: hostile. */
export interface AlertSummary {
  readonly id: number;
  readonly state: AlertRow["state"];
  readonly severity: AlertMessage["severity"];
  readonly kind: string;
  readonly zoneId: number | null;
  /** As its last message has it; null for a zone without a name. */
  readonly zoneName: string | null;
  readonly ruleId: string | null;
  readonly firedAt: number;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly resolvedAt: number | null;
  readonly fingerprint: string;
  /** Null where the alert holds no message that can be read. */
  readonly headline: string | null;
  /** The operator's. */
  readonly links: AlertMessage["links"];
}

export function summariseAlert(row: AlertRow): AlertSummary {
  const { id, state, kind, zoneId, ruleId, acknowledgedBy, fingerprint } = row;
  const message = readAlertMessage(row);
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

/** What the alert last said; null where it cannot be read. */
export function readAlertMessage(row: AlertRow): AlertMessage | null {
  const parsed = alertMessage.safeParse((row.details as { message?: unknown }).message);
  return parsed.success ? parsed.data : null;
}
