import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertAlert,
  insertNotifications,
  readNewestAlerts,
} from "../../db/alerting/alerts.ts";
import type { Queryable } from "../../db/client.ts";
import { addLinks } from "../../src/alerting/message/add-links.ts";
import { buildSelfMessage } from "../../src/alerting/message/self-message.ts";
import { nextAlert } from "../../src/alerting/next-alert.ts";
import type { LinkRule } from "../../src/alerting/routing/routing.ts";
import { toAlertRecord } from "../../src/alerting/to-alert-record.ts";
import { toldChannels } from "../../src/model/alert-record.ts";
import type { Severity } from "../../src/model/severity.ts";
import type { ZoneFacts } from "../../src/model/zones.ts";
import { toNotifications } from "./to-notifications.ts";

export interface SelfTransition {
  readonly fingerprint: string;
  readonly zoneId: number | null;
  /** The open alert; null where one begins. */
  readonly row: AlertRow | null;
  readonly reason: "first" | "worse" | "repeat" | "resolved";
  readonly severity: Severity;
  readonly headline: string;
  /** Epoch ms; when what it tells of began. No two episodes may begin at the same. */
  readonly openedAtMs: number;
  readonly nowMs: number;
  /** Who is told; of a resolve, those who were told before. */
  readonly channels: readonly string[];
  /** The silence that keeps it from them; of a resolve, from nobody. */
  readonly silencedBy?: number | null;
  /** The operator's, of which those that are for it go into its message. */
  readonly links: readonly LinkRule[];
  readonly zone?: ZoneFacts;
}

/** One transition of an alert about Longwatch itself, with its outbox rows. False when another has written it. */
export async function writeSelfAlert(tx: Queryable, given: SelfTransition): Promise<boolean> {
  const change = await asReopening(tx, given);
  const { fingerprint, zoneId, row, reason, severity, headline, openedAtMs, nowMs } = change;
  const { silencedBy = null, links, zone = {} } = change;
  const before = row === null ? null : toAlertRecord(row);
  const heard = silencedBy === null ? change.channels : [];
  const channels = before === null || reason !== "resolved" ? heard : [...toldChannels(before)];
  const spike = { id: 0, severity, openedAtMs, closedAtMs: null };
  const facts = { reason, spike, channels, silencedBy, hasAdvice: false, nowMs };
  const alert = { ...nextAlert(before, facts), spikeId: null };
  const { state, transition, transitions, firedAtMs, resolvedAtMs } = alert;
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  const stored = {
    state,
    transition,
    transitions: [...transitions],
    spikeId: null,
    resolvedAt,
    kind: "self",
  };
  const firedAt = new Date(firedAtMs);
  const alertId =
    row === null
      ? await insertAlert(tx, { ...stored, fingerprint, zoneId, ruleId: null, firedAt })
      : (await changeAlert(tx, row, stored))
        ? row.id
        : null;
  if (alertId === null) return false;
  const said = buildSelfMessage({ alertId, fingerprint, alert, reason, severity, zoneId, zone, headline });
  const message = addLinks(said, links, nowMs);
  await describeAlert(tx, alertId, { details: { message }, spikeId: null });
  await insertNotifications(tx, toNotifications(message, { channels, alert: before }));
  return true;
}

/**
 * An episode that a person has resolved while its cause went on is the same episode: it fires again under its own key, which
 * receivers know to be closed. A second alert that began at the same moment would be taken for a repetition of the first.
 */
async function asReopening(tx: Queryable, change: SelfTransition): Promise<SelfTransition> {
  const { fingerprint, row, openedAtMs } = change;
  if (row !== null) return change;
  const newest = (await readNewestAlerts(tx, [fingerprint])).get(fingerprint);
  const isSame =
    newest !== undefined && newest.state === "resolved" && newest.firedAt.getTime() >= openedAtMs;
  return isSame ? { ...change, row: newest, reason: "worse" } : change;
}
