import type { Database } from "../db/client.ts";
import { readNewestAlerts } from "../db/queries/alerts.ts";
import { type FailingChannel, readFailingChannels } from "../db/queries/channel-health.ts";
import { readChannelStandings } from "../db/queries/channel-states.ts";
import { inTransaction } from "../db/transaction.ts";
import { channelFingerprint, describeTrouble } from "../src/alert/channel-alert.ts";
import type { Log } from "../src/log.ts";
import { writeSelfAlert } from "./write-self-alert.ts";

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
  const { nowMs, failing } = await readTrouble(database, channels);
  const rows = await readNewestAlerts(database.db, channels.map(channelFingerprint));
  const healthy = channels.filter((name) => failing.every(({ channel }) => channel !== name));
  let written = 0;
  for (const channel of channels) {
    const trouble = failing.find((one) => one.channel === channel) ?? null;
    const fingerprint = channelFingerprint(channel);
    const row = rows.get(fingerprint) ?? null;
    const isOpen = row !== null && row.state !== "resolved";
    if (isOpen === (trouble !== null)) continue;
    const change = {
      fingerprint,
      zoneId: null,
      row: isOpen ? row : null,
      reason: trouble === null ? "resolved" : "first",
      severity: "error",
      headline: describeTrouble(channel, trouble),
      openedAtMs: trouble?.sinceMs ?? nowMs,
      nowMs,
      channels: healthy,
    } as const;
    if (!(await inTransaction(database, ({ tx }) => writeSelfAlert(tx, change)))) continue;
    written += 1;
    if (trouble === null) log.info({ channel }, "channel recovered");
    else log.error({ ...trouble }, "channel failed");
  }
  return written;
}

/** Channels that fail, and those that are disabled: these also while nothing of theirs has failed since a replay. */
async function readTrouble(
  { db }: Database,
  channels: readonly string[],
): Promise<{ nowMs: number; failing: readonly FailingChannel[] }> {
  const { nowMs, failing } = await readFailingChannels(db, { channels, graceMs: GRACE_MS });
  const disabled = (await readChannelStandings(db))
    .filter(({ channel, state }) => state === "disabled" && channels.includes(channel))
    .map(({ channel, openedAtMs, waiting, dead, lastError }) => {
      const sinceMs = Math.floor(openedAtMs ?? nowMs);
      const why = `${lastError}; disabled until a restart or another configuration`;
      return { channel, sinceMs, waiting, givenUp: dead, lastError: why };
    });
  const names = new Set(disabled.map(({ channel }) => channel));
  return { nowMs, failing: [...failing.filter(({ channel }) => !names.has(channel)), ...disabled] };
}
