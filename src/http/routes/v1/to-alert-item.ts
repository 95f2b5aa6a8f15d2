import type { z } from "zod";
import type { AlertDelivery } from "../../../../db/alerting/alert-reports.ts";
import type { AlertRow } from "../../../../db/alerting/alerts.ts";
import { parseDetails } from "../../../alerting/alert-details.ts";
import { toAlertRecord } from "../../../alerting/alert-record.ts";
import { ruleTitle } from "../../../alerting/message/rule-title.ts";
import { maskNullable } from "../../../archive/mask/mask-text.ts";
import { isAdvised } from "../../../delivery/message/describe-alert.ts";
import { summariseAlert } from "../../../operations/summarise-alert.ts";
import { maskMessage } from "../../keys/mask-message.ts";
import type { AlertDetail, AlertItem, DeliveryOfAlert } from "./alert-schemas.ts";
import { toIso, toIsoOrNull } from "./parts.ts";

export function toAlertItem(row: AlertRow, isMasked: boolean): z.infer<typeof AlertItem> {
  const { firedAt, acknowledgedAt, resolvedAt, traits: _traits, ...rest } = summariseAlert(row);
  const { headline, acknowledgedBy } = rest;
  return {
    ...rest,
    headline: isMasked ? maskNullable(headline) : headline,
    acknowledgedBy: isMasked ? maskNullable(acknowledgedBy) : acknowledgedBy,
    ruleTitle: ruleTitle(row.ruleId),
    firedAt: toIso(firedAt),
    acknowledgedAt: toIsoOrNull(acknowledgedAt),
    resolvedAt: toIsoOrNull(resolvedAt),
    transition: row.transition,
  };
}

/** Every field of an alert; addresses are masked for callers that may not see full ones. */
export function toAlertDetail(
  row: AlertRow,
  deliveries: readonly AlertDelivery[],
  isMasked: boolean,
): z.infer<typeof AlertDetail> {
  const stored = parseDetails(row.details).message;
  const message = stored !== null && isMasked ? maskMessage(stored) : stored;
  return {
    ...toAlertItem(row, isMasked),
    facts: message,
    evidence: message?.top ?? null,
    advice: message === null || !isAdvised(message) ? null : { ...message.advice, source: "platform AI" },
    members: message?.members ?? [],
    spikeId: row.spikeId,
    howToSilence: message?.howToSilence ?? null,
    transitions: toAlertRecord(row).transitions.map(({ at, by, note, severity, silencedBy, ...entry }) => ({
      ...entry,
      at: toIso(at),
      severity: severity ?? null,
      silencedBy: silencedBy ?? null,
      by: isMasked ? maskNullable(by) : (by ?? null),
      note: isMasked ? maskNullable(note) : (note ?? null),
    })),
    deliveries: deliveries.map((delivery) => toDelivery(delivery, isMasked)),
  };
}

function toDelivery(delivery: AlertDelivery, isMasked: boolean): z.infer<typeof DeliveryOfAlert> {
  const { state, createdAt, nextAttemptAt, deliveredAt, lastError } = delivery;
  const isWaiting = state === "pending" || state === "sending";
  return {
    ...delivery,
    lastError: isMasked ? maskNullable(lastError) : lastError,
    createdAt: createdAt.toISOString(),
    nextAttemptAt: isWaiting ? nextAttemptAt.toISOString() : null,
    deliveredAt: deliveredAt?.toISOString() ?? null,
  };
}
