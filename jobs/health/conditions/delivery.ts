/** Conditions of channels, destinations and silences. */

import { gravestNotified } from "#alerts/rules/alert-history.ts";
import { type AlertRecord, parseDetails, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { type SignedSilence, toSilencedAlert, toSilences, wouldMute } from "#alerts/rules/silence.ts";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import { readSilences } from "#db/alerts/silences.ts";
import type { Queryable } from "#db/client.ts";
import { readChannelStatuses, readFailingChannels } from "#db/delivery/channel-states.ts";
import { countGivenUp } from "#db/delivery/deliveries.ts";
import {
  type ArrivalTrouble,
  type DestinationHealth,
  readArrivalTrouble,
  readDestinations,
} from "#db/delivery/forwarding/forward-destinations.ts";
import { formatDuration, many, showTime } from "#lib/format.ts";
import { cutText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { UNRESOLVED_STATES } from "#model/kinds.ts";
import { defineCondition, see, toStep } from "./condition.ts";

/** A receiver that restarts needs no alert. A receiver that fails for longer has kept notifications from on-call. */
const GRACE_MS = 15 * MINUTE_MS;

interface ChannelTrouble {
  readonly key: string;
  readonly isConfigured: boolean;
  /** Null while it works. */
  readonly trouble: { since: number; waiting: number; givenUp: number; why: string; graceMs: number } | null;
}

export const channel = defineCondition<ChannelTrouble>({
  name: "channel",
  of: "channel",
  severity: "error",
  isShownEarly: true,
  async read({ db, nowMs, channels, once }) {
    const statuses = await once(readChannelStatuses);
    const configured = channels ?? statuses.map((status) => status.channel);
    const failing = await readFailingChannels(db, { channels: configured, graceMs: GRACE_MS });
    const former = statuses.map((status) => status.channel).filter((one) => !configured.includes(one));
    return [...configured, ...former].map((key): ChannelTrouble => {
      const isConfigured = configured.includes(key);
      const status = statuses.find((one) => one.channel === key);
      const failed = failing.find((one) => one.channel === key);
      if (!isConfigured || status === undefined || (failed === undefined && status.state === "closed"))
        return { key, isConfigured, trouble: null };
      const { state, openedAtMs, dead, lastError, waiting } = status;
      const own = {
        sinceMs: openedAtMs ?? nowMs,
        waiting,
        givenUp: dead,
        lastError: lastError ?? `circuit ${state}`,
      };
      // A disabled channel fails even if nothing has failed since a replay.
      const isDisabled = state === "disabled";
      const { sinceMs, lastError: because, ...counts } = isDisabled ? own : (failed ?? own);
      const trouble = {
        ...counts,
        since: Math.floor(sinceMs),
        why: isDisabled ? `${because}; disabled until a restart or another configuration` : because,
        graceMs: isDisabled || failed !== undefined ? 0 : Number.POSITIVE_INFINITY,
      };
      return { key, isConfigured, trouble };
    });
  },
  find({ key, trouble }) {
    if (trouble === null) return null;
    const { waiting, givenUp, why, ...found } = trouble;
    return {
      ...found,
      headline: `Channel ${key} does not deliver (pending: ${waiting}, given up: ${givenUp}): ${why}`,
      next: toStep("Correct that, then try it:", `channels test ${key}`),
      // The number of waiting messages changes every second.
      keepsHeadline: true,
    };
  },
  recovered: ({ key, isConfigured }) =>
    isConfigured ? `Channel ${key} delivers again` : `Channel ${key} is not configured any more`,
});

const givenUp = defineCondition<{ notifications: number }>({
  name: "given-up",
  of: "service",
  severity: "warning",
  isShownEarly: true,
  read: async ({ db, nowMs }) => [{ notifications: await countGivenUp(db, startOfHour(horizonAt(nowMs))) }],
  find({ notifications }, { nowMs }) {
    if (notifications === 0) return null;
    return {
      since: nowMs,
      headline: many(notifications, "dead notification"),
      next: see("deliveries list --state dead"),
      // The alert about the channel has said it.
      graceMs: Number.POSITIVE_INFINITY,
    };
  },
  recovered: () => "No dead notification is left",
});

interface DestinationTrouble {
  readonly key: string;
  /** Null if it is not configured any more. */
  readonly trouble: (DestinationHealth & ArrivalTrouble) | null;
}

const destination = defineCondition<DestinationTrouble>({
  name: "destination",
  of: "destination",
  fingerprint: "forward",
  severity: "error",
  async read({ db, destinations }) {
    const read: DestinationTrouble[] = [];
    for (const [key, health] of await readDestinations(db)) {
      const isConfigured = destinations.includes(key);
      read.push({
        key,
        trouble: isConfigured ? { ...health, ...(await readArrivalTrouble(db, key)) } : null,
      });
    }
    return read;
  },
  /** Names the gravest trouble only: its next step is the one to take. */
  find({ key, trouble }, { nowMs }) {
    if (trouble === null) return null;
    const { failingSince, isRefused, lastError, differing, refused } = trouble;
    const isFailing = failingSince !== null && (isRefused || nowMs - failingSince >= GRACE_MS);
    if (!isFailing && differing !== null)
      return {
        since: differing.since,
        headline: `Destination ${key} does not have all events of ${many(differing.hours, "hour")}, although they were sent twice. See longwatch forward hours ${key} --arrival differs`,
      };
    if (!isFailing && refused !== null)
      return {
        since: refused.since,
        headline: `Destination ${key} has refused ${many(refused.events, "event")}, for example because: ${refused.reason}. See longwatch forward refused ${key}`,
      };
    if (failingSince === null) return null;
    const step = isRefused
      ? "Correct it in the configuration file or at the receiver"
      : "See whether the receiver is up";
    return {
      since: failingSince,
      headline: `Destination ${key} has accepted no events since ${showTime(Math.floor(failingSince))} UTC: ${lastError}. ${step}. The events wait in Longwatch, and none is lost`,
      next: toStep("To try at once:", `forward retry ${key}`),
      graceMs: isRefused ? 0 : GRACE_MS,
    };
  },
  recovered: ({ key, trouble }) =>
    trouble === null
      ? `Destination ${key} is not configured any more`
      : `Destination ${key} works again: it accepts events, and no hour differs`,
});

/** The end of a silence is announced this long before, or a quarter of its length before if that is less. */
const NOTICE_MS = 15 * MINUTE_MS;
const NAMED = 3;
const HEADLINE_CHARS = 120;
const REASON_CHARS = 100;
/** The most firing alerts that are compared with silences, the worst first. */
const MOST_ALERTS = 5_000;

/** An alert that a silence mutes. The headline is hostile text. */
interface MutedFiring {
  readonly id: number;
  readonly headline: string | null;
  readonly record: AlertRecord;
}

interface Muting {
  readonly key: number;
  readonly zoneId: number | null;
  readonly silence: SignedSilence;
  readonly muted: readonly MutedFiring[];
}

/** Returns the silences that are in force, and those that ended since the oldest open alert about Longwatch itself. */
async function readMuting(db: Queryable, _zoneIds: readonly number[], nowMs: number): Promise<Muting[]> {
  // A silence may have ended while the service was down.
  const own = await listAlerts(db, { states: UNRESOLVED_STATES, kinds: ["self"], limit: MOST_ALERTS });
  const fromMs = Math.min(nowMs, ...own.map(({ firedAt }) => firedAt.getTime()));
  const silences = toSilences(await readSilences(db, { fromMs, toMs: nowMs }));
  if (silences.length === 0) return [];
  const rows = await listAlerts(db, { states: ["firing"], sort: "worst", limit: MOST_ALERTS });
  const firing = rows.map((row) => {
    const headline = parseDetails(row.details).message?.headline ?? null;
    return { id: row.id, headline, record: toAlertRecord(row), alert: toSilencedAlert(row) };
  });
  return silences.map((silence) => ({
    key: silence.id,
    zoneId: zoneOf(silence),
    silence,
    muted:
      silence.expiresAtMs > nowMs ? firing.filter(({ alert }) => wouldMute(silence.matchers, alert)) : [],
  }));
}

/** Keys for one zone see the alert only if the silence is for that zone alone. */
function zoneOf({ matchers: { zone = [] } }: SignedSilence): number | null {
  const [only = null, ...others] = zone;
  return others.length === 0 ? only : null;
}

const silenceEnd = defineCondition<Muting>({
  name: "silence-end",
  of: "silence",
  fingerprint: "silence.end",
  severity: "info",
  read: ({ once }) => once(readMuting),
  find({ silence, muted }, { nowMs }) {
    const leftMs = silence.expiresAtMs - nowMs;
    if (!endsSoon(silence, nowMs) || muted.length === 0) return null;
    return {
      since: nowMs,
      headline: `${nameSilence(silence)} ends in ${formatDuration(leftMs)}. ${many(muted.length, "alert")} that it mutes will notify again: ${listMuted(muted)}`,
    };
  },
  recovered({ silence }, { nowMs }) {
    const { expiresAtMs } = silence;
    if (expiresAtMs <= nowMs) return `${nameSilence(silence)} has ended`;
    const now = endsSoon(silence, nowMs)
      ? "mutes no firing alert any more"
      : `now ends ${showTime(expiresAtMs)} UTC`;
    return `${nameSilence(silence)} ${now}`;
  },
});

function endsSoon({ startsAtMs, expiresAtMs }: SignedSilence, nowMs: number): boolean {
  const leftMs = expiresAtMs - nowMs;
  return leftMs > 0 && leftMs <= Math.min(NOTICE_MS, (expiresAtMs - startsAtMs) / 4);
}

/** A silence hides critical alerts that no channel was notified of. The alert stays open until the silence ends. */
const silenceHides = defineCondition<Muting>({
  name: "silence-hides",
  of: "silence",
  fingerprint: "silence.hidden",
  severity: "warning",
  read: ({ once }) => once(readMuting),
  find({ silence, muted }, { nowMs, isOpen }) {
    const hidden = muted.filter(({ record }) => isHiddenCritical(record, silence.id));
    if (silence.expiresAtMs <= nowMs || (hidden.length === 0 && !isOpen)) return null;
    return {
      since: nowMs,
      headline: `${nameSilence(silence)} hides ${many(hidden.length, "critical alert")} that no channel was notified of, until ${showTime(silence.expiresAtMs)} UTC: ${listMuted(hidden)}`,
      keepsHeadline: hidden.length === 0,
    };
  },
  recovered: ({ silence }) => `${nameSilence(silence)} has ended, and it hides no critical alert any more`,
});

/** Returns whether the silence has kept from every channel that the alert is critical. */
function isHiddenCritical(record: AlertRecord, silenceId: number): boolean {
  const isMuted = record.transitions.some(
    ({ silencedBy, severity }) => silencedBy === silenceId && severity === "critical",
  );
  return isMuted && gravestNotified(record) !== "critical";
}

/** `Silence 3 of alice (load test)`. */
function nameSilence({ id, createdBy, reason }: SignedSilence): string {
  return `Silence ${id} of ${createdBy} (${cutText(reason, REASON_CHARS)})`;
}

function listMuted(muted: readonly MutedFiring[]): string {
  const named = muted
    .slice(0, NAMED)
    .map(({ id, headline }) => `alert ${id}, ${cutText(headline ?? "unreadable", HEADLINE_CHARS)}`);
  const more = muted.length - named.length;
  return `${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

export const DELIVERY_CONDITIONS = [channel, givenUp, destination, silenceEnd, silenceHides];
