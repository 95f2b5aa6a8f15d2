import type { Database, Queryable } from "../db/client.ts";
import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertAlert,
  insertNotifications,
  readNewestAlerts,
} from "../db/queries/alerts.ts";
import { type FailingChannel, readFailingChannels } from "../db/queries/channel-health.ts";
import { inTransaction } from "../db/transaction.ts";
import { type AlertRecord, toldChannels } from "../src/alert/alert-record.ts";
import { buildChannelMessage, channelFingerprint } from "../src/alert/channel-alert.ts";
import { notificationKeyOf } from "../src/alert/dedupe-key.ts";
import { nextAlert } from "../src/alert/next-alert.ts";
import { toAlertRecord } from "../src/alert/to-alert-record.ts";
import type { Log } from "../src/log.ts";

/** A receiver that restarts is nobody's business; one that is away for longer has kept pages from on-call. */
const GRACE_MS = 15 * 60_000;

export interface ReportChannelsDeps {
  readonly database: Database;
  /** By channel name: the configured ones. */
  readonly notifiers: ReadonlyMap<string, unknown>;
  readonly log: Log;
}

/**
 * Raises an alert of Longwatch's own for every channel that fails, to the channels that do not, and resolves it when the
 * channel delivers again. How many transitions were written. Safe beside itself: one alert is open per channel, and moves
 * on only from where it was read.
 */
export async function reportChannels({ database, notifiers, log }: ReportChannelsDeps): Promise<number> {
  const channels = [...notifiers.keys()];
  const { nowMs, failing } = await readFailingChannels(database.db, { channels, graceMs: GRACE_MS });
  const rows = await readNewestAlerts(database.db, channels.map(channelFingerprint));
  const healthy = channels.filter((name) => failing.every(({ channel }) => channel !== name));
  let written = 0;
  for (const channel of channels) {
    const trouble = failing.find((one) => one.channel === channel) ?? null;
    const row = rows.get(channelFingerprint(channel)) ?? null;
    const isOpen = row !== null && row.state !== "resolved";
    if (isOpen === (trouble !== null)) continue;
    const change = { channel, trouble, row: isOpen ? row : null, told: healthy, nowMs };
    if (!(await inTransaction(database, ({ tx }) => write(tx, change)))) continue;
    written += 1;
    if (trouble === null) log.info({ channel }, "channel recovered");
    else log.error({ ...trouble }, "channel failed");
  }
  return written;
}

interface Change {
  readonly channel: string;
  readonly trouble: FailingChannel | null;
  /** The open alert; null where one begins. */
  readonly row: AlertRow | null;
  readonly told: readonly string[];
  readonly nowMs: number;
}

/** False when another has written it. */
async function write(tx: Queryable, { channel, trouble, row, told, nowMs }: Change): Promise<boolean> {
  const reason = trouble === null ? "resolved" : "first";
  const before = row === null ? null : toAlertRecord(row);
  const channels = before === null ? told : [...toldChannels(before)];
  const openedAtMs = trouble?.sinceMs ?? nowMs;
  const spike = { id: 0, severity: "error", openedAtMs, closedAtMs: null } as const;
  const facts = { reason, spike, channels, silencedBy: null, hasAdvice: false, nowMs } as const;
  const alert = { ...nextAlert(before, facts), spikeId: null };
  const alertId = await store(tx, channel, row, alert);
  if (alertId === null) return false;
  const message = buildChannelMessage({ alertId, channel, alert, reason, trouble });
  await describeAlert(tx, alertId, { details: { message }, spikeId: null });
  const { dedupeKey, transition } = message;
  await insertNotifications(
    tx,
    channels.map((to) => ({
      alertId,
      transition,
      reason,
      channel: to,
      dedupeKey: notificationKeyOf(dedupeKey, transition, to),
      content: message,
    })),
  );
  return true;
}

async function store(
  tx: Queryable,
  channel: string,
  row: AlertRow | null,
  { state, transition, transitions, firedAtMs, resolvedAtMs }: AlertRecord,
): Promise<number | null> {
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  const change = {
    state,
    transition,
    transitions: [...transitions],
    spikeId: null,
    resolvedAt,
    kind: "self",
  };
  if (row !== null) return (await changeAlert(tx, row, change)) ? row.id : null;
  const fingerprint = channelFingerprint(channel);
  return insertAlert(tx, {
    ...change,
    fingerprint,
    zoneId: null,
    ruleId: null,
    firedAt: new Date(firedAtMs),
  });
}
