import type { z } from "zod";
import { type AlertDelivery, type ReportedAlert, readAlertDeliveries } from "#db/alerting/alert-reports.ts";
import { readSilences } from "#db/alerting/silences.ts";
import type { Queryable } from "#db/client.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { summariseAlert } from "#operations/alerts/summarise-alert.ts";
import { toIso, toIsoOrNull } from "#operations/fields.ts";
import { listSilenced } from "#operations/list-silenced.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { toAlertRecord } from "#stages/alerting/alert-record.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { type SilenceChoice, silenceChoices } from "#stages/alerting/message/silence-choices.ts";
import { silenceCommand } from "#stages/alerting/message/silence-command.ts";
import { findAlertSilence, type SignedSilence, toSilences } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";
import { maskNullable, maskText } from "#stages/archive/mask/mask-text.ts";
import { isAdvised } from "#stages/delivery/message/describe-alert.ts";
import { maskMessage } from "../../keys/mask-message.ts";
import type { AlertDetail, AlertItem, DeliveryOfAlert } from "./alert-schemas.ts";

/** The inputs of a list's items besides their rows. */
export interface AlertView {
  readonly isMasked: boolean;
  readonly nowMs: number;
  /** The silences in force. */
  readonly silences: readonly SignedSilence[];
}

export async function readAlertView(db: Queryable, isMasked: boolean, nowMs: number): Promise<AlertView> {
  const rows = await readSilences(db, { fromMs: nowMs, toMs: nowMs });
  return { isMasked, nowMs, silences: toSilences(rows) };
}

export function toAlertItem(
  row: ReportedAlert,
  { isMasked, silences, nowMs }: AlertView,
): z.infer<typeof AlertItem> {
  const { firedAt, acknowledgedAt, resolvedAt, ...rest } = summariseAlert(row);
  const { headline, acknowledgedBy } = rest;
  const silence = row.state === "resolved" ? null : findAlertSilence(silences, toSilencedAlert(row), nowMs);
  return {
    ...rest,
    headline: isMasked ? maskNullable(headline) : headline,
    acknowledgedBy: isMasked ? maskNullable(acknowledgedBy) : acknowledgedBy,
    ruleTitle: ruleTitle(row.ruleId),
    firedAt: toIso(firedAt),
    acknowledgedAt: toIsoOrNull(acknowledgedAt),
    resolvedAt: toIsoOrNull(resolvedAt),
    quietSince: row.quietSince?.toISOString() ?? null,
    silence: silence === null ? null : toMutedBy(silence, isMasked),
    transition: row.transition,
  };
}

function toMutedBy({ id, expiresAtMs, createdBy, reason }: SignedSilence, isMasked: boolean) {
  return {
    id,
    expiresAt: toIso(expiresAtMs),
    createdBy: isMasked ? maskText(createdBy) : createdBy,
    reason: isMasked ? maskText(reason) : reason,
  };
}

export interface AlertDetails {
  readonly row: ReportedAlert;
  readonly deliveries: readonly AlertDelivery[];
  /** The silences in force now, and all that were while the alert was open. */
  readonly silences: readonly SignedSilence[];
}

/** Reads everything that is shown of an alert. */
export async function readAlertDetails(
  db: Queryable,
  row: ReportedAlert,
  nowMs: number,
): Promise<AlertDetails> {
  const span = { fromMs: row.firedAt.getTime(), toMs: row.resolvedAt?.getTime() ?? nowMs };
  return {
    row,
    deliveries: await readAlertDeliveries(db, row.id),
    silences: toSilences(await readSilences(db, span)),
  };
}

/** Every field of an alert; addresses are masked for callers that may not see full ones. */
export function toAlertDetail(
  { row, deliveries, silences }: AlertDetails,
  isMasked: boolean,
  nowMs: number,
): z.infer<typeof AlertDetail> {
  const stored = parseDetails(row.details).message;
  const message = stored !== null && isMasked ? maskMessage(stored) : stored;
  // A key that sees masked addresses must not name one in a silence.
  const choices = stored === null ? [] : listChoices(stored, isMasked);
  return {
    ...toAlertItem(row, { isMasked, silences, nowMs }),
    facts: message,
    evidence: message?.top ?? null,
    advice: message === null || !isAdvised(message) ? null : { ...message.advice, source: "platform AI" },
    members: message?.members ?? [],
    spikeId: row.spikeId,
    howToSilence: isMasked ? silenceCommand(row.id, choices) : (message?.howToSilence ?? null),
    silenceChoices: choices.map((choice) => ({ ...choice, command: silenceCommand(row.id, [choice]) ?? "" })),
    silenced: listSilenced(row, silences, nowMs).map(({ silence, fromMs, toMs }) => ({
      ...toMutedBy(silence, isMasked),
      from: toIso(fromMs),
      to: toIsoOrNull(toMs),
    })),
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

function listChoices(message: AlertMessage, isMasked: boolean): SilenceChoice[] {
  return silenceChoices(message).filter(({ matchers }) => !isMasked || matchers.ip === undefined);
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
