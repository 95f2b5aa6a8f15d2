/** Reports channels and destinations that fail. */

import { parseDetails, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { channelFingerprint, describeTrouble } from "#alerts/rules/message/self-message.ts";
import { assessForwarding, forwardFingerprint } from "#alerts/rules/self/service-alert.ts";
import { avoidFailing, routeSelf } from "#alerts/rules/self-alert.ts";
import { type AlertRow, readNewestAlerts } from "#db/alerts/alerts.ts";
import type { Database } from "#db/client.ts";
import {
  type FailingChannel,
  readChannelStatuses,
  readFailingChannels,
} from "#db/delivery/channel-states.ts";
import { readArrivalTrouble, readDestinations } from "#db/delivery/forwarding/forward-destinations.ts";
import type { JobContext } from "../context.ts";
import { raiseSelfAlert, type SelfAlertDeps } from "./persist-transition.ts";
import { readActiveSilences } from "./report-silences.ts";

/** A receiver that restarts needs no alert. A receiver that fails for longer has kept notifications from on-call. */
const GRACE_MS = 15 * 60_000;

interface ReportChannelsDeps extends Pick<JobContext, "database" | "log" | "routing"> {
  /** The configured channels by name. */
  readonly notifiers: ReadonlyMap<string, unknown>;
}

/**
 * Raises an alert for every channel that fails, to those of its routes' other channels that work, and resolves it when
 * the channel delivers again or is not configured any more. Returns the number of transitions written. Several replicas
 * may run this at once: one alert is open per channel and is changed only from the transition that was read.
 */
export async function reportChannels(deps: ReportChannelsDeps): Promise<number> {
  const { database, notifiers, log } = deps;
  const channels = [...notifiers.keys()];
  const { nowMs, failing, former } = await readTrouble(database, channels);
  const rows = await readNewestAlerts(database.db, [...channels, ...former].map(channelFingerprint));
  const context = {
    routing: deps.routing(),
    silences: await readActiveSilences(database.db, log, nowMs),
    nowMs,
  };
  const unwell = new Set(failing.map(({ channel }) => channel));
  const routeOf: SelfAlertDeps["routeOf"] = (subject) =>
    avoidFailing(routeSelf(context, subject), channels, unwell);
  let written = 0;
  for (const channel of [...channels, ...former]) {
    const trouble = failing.find((one) => one.channel === channel) ?? null;
    const fingerprint = channelFingerprint(channel);
    const row = rows.get(fingerprint) ?? null;
    const isOpen = row !== null && row.state !== "resolved";
    if (!isOpen && trouble === null) continue;
    const news = {
      reason: isOpen ? (trouble === null ? "resolved" : "none") : "first",
      severity: "error",
      // Keeps the first headline, because the number of waiting messages changes every second.
      headline:
        isOpen && trouble !== null
          ? headlineOf(row)
          : describeTrouble(channel, trouble, !former.includes(channel)),
      openedAtMs: trouble?.sinceMs ?? nowMs,
    } as const;
    const facts = { channel, ...trouble };
    const given = { about: "channel", fingerprint, zoneId: null, row, news, nowMs, facts };
    if (await raiseSelfAlert({ database, log, routeOf }, given)) written += 1;
  }
  return written;
}

function headlineOf({ details }: AlertRow): string {
  return parseDetails(details).message?.headline ?? "";
}

/**
 * Returns the channels that fail and those that are disabled, and the names of channels that were used and are not
 * configured any more. A disabled channel is included even if nothing has failed since a replay.
 */
async function readTrouble(
  { db }: Database,
  channels: readonly string[],
): Promise<{ nowMs: number; failing: readonly FailingChannel[]; former: readonly string[] }> {
  const { nowMs, failing } = await readFailingChannels(db, { channels, graceMs: GRACE_MS });
  const statuses = await readChannelStatuses(db);
  const disabled = statuses
    .filter(({ channel, state }) => state === "disabled" && channels.includes(channel))
    .map(({ channel, openedAtMs, waiting, dead, lastError }) => {
      const sinceMs = Math.floor(openedAtMs ?? nowMs);
      const why = `${lastError}; disabled until a restart or another configuration`;
      return { channel, sinceMs, waiting, givenUp: dead, lastError: why };
    });
  const names = new Set(disabled.map(({ channel }) => channel));
  const former = statuses.map(({ channel }) => channel).filter((channel) => !channels.includes(channel));
  return { nowMs, failing: [...failing.filter(({ channel }) => !names.has(channel)), ...disabled], former };
}

/**
 * Raises, updates and resolves one alert per destination of forwarded events: it accepts none, hours differ, or events were
 * refused. A destination that is not configured any more resolves. Returns the number of transitions written.
 */
export async function reportDestinations(
  alerting: SelfAlertDeps,
  configured: readonly string[],
  nowMs: number,
): Promise<number> {
  const { db } = alerting.database;
  const known = await readDestinations(db);
  const rows = await readNewestAlerts(db, [...known.keys()].map(forwardFingerprint));
  let written = 0;
  for (const [destination, health] of known) {
    const fingerprint = forwardFingerprint(destination);
    const row = rows.get(fingerprint) ?? null;
    const trouble = configured.includes(destination)
      ? { ...health, ...(await readArrivalTrouble(db, destination)) }
      : null;
    const alert = row === null ? null : toAlertRecord(row);
    const news = assessForwarding(nowMs, alert, { destination, trouble });
    const given = {
      about: "forwarding",
      fingerprint,
      row,
      news,
      nowMs,
      zoneId: null,
      facts: { destination },
    };
    written += Number(await raiseSelfAlert(alerting, given));
  }
  return written;
}
