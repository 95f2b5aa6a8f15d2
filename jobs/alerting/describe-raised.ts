import { readAdviceText } from "../../db/alerting/advice.ts";
import { type AlertRow, describeAlert } from "../../db/alerting/alerts.ts";
import type { Queryable } from "../../db/client.ts";
import type { AdviceStanding } from "../../src/alerting/advice/advice-standing.ts";
import type { AlertSpike } from "../../src/alerting/alert-spike.ts";
import { buildMessage } from "../../src/alerting/message/build-message.ts";
import type { AlertMessage } from "../../src/model/alert-message.ts";
import { type AlertRecord, toldChannels } from "../../src/model/alert-record.ts";

/** Brings what is looked up of an open alert up to date without a transition; nobody is told. */
export async function describeRaised(
  tx: Queryable,
  row: AlertRow,
  alert: AlertRecord,
  spike: AlertSpike,
  standing: AdviceStanding,
): Promise<void> {
  const said = readSaid(row);
  const advice = await readAdvice(tx, spike, standing);
  const facts = { alertId: row.id, fingerprint: row.fingerprint, alert, spike, advice };
  const isCounted = spike.closedAtMs === null && toldChannels(alert).size > 0;
  const message =
    said === undefined || !isCounted
      ? { ...said, advice }
      : { ...buildMessage({ ...facts, reason: "first" }), reason: said.reason, links: said.links };
  const details = said === undefined ? row.details : { message };
  await describeAlert(tx, row.id, { details, spikeId: spike.id });
}

/** The recommendation as a message holds it. */
export async function readAdvice(
  tx: Queryable,
  spike: AlertSpike,
  { state, reason, askedAtMs }: AdviceStanding,
): Promise<AlertMessage["advice"]> {
  const { zoneId, ruleId } = spike;
  const text = askedAtMs === null ? null : await readAdviceText(tx, { zoneId, ruleId, askedAtMs });
  return { state, text, reason };
}

/** What the alert last said; raise-alerts alone writes the details. */
export function readSaid(row: AlertRow): AlertMessage | undefined {
  return (row.details as { message?: AlertMessage }).message;
}
