/** The state of the whole service, not of this process, as metrics that are read from the database at every scrape. */

import type { Gauge } from "prom-client";
import { readZoneArchives } from "#db/archive/archived-days.ts";
import type { Database } from "#db/client.ts";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import { readUnjudgedZones } from "#db/detection/judged-hours.ts";
import { countGapHours, countOpenAlerts, readServiceStatus } from "#db/health/service-status.ts";
import { readUndecided } from "#db/proof/coverage-report.ts";
import { readSuspicions } from "#db/proof/platform-health.ts";
import { readReopenedHours } from "#db/proof/reopen-hours.ts";
import { sumDestinations } from "#delivery/forwarding/destinations.ts";
import { judgeableHours } from "#detection/rules/find-late.ts";
import { readAccounts } from "#health/service/accounts.ts";
import { countConditions, openServiceScope } from "#health/service/attention.ts";
import { DAY_MS } from "#lib/units.ts";
import { labelAccount } from "#model/zones.ts";
import type { QueryContext } from "#operations/operation.ts";
import { hoursToLoss } from "#proof/rules/hour-status.ts";
import { UNPREVENTABLE } from "#proof/rules/judge-hour.ts";

/** Gaps older than this are not in the metrics, so that few rows are read at every scrape. */
const GAP_DAYS = 30;
const NEWEST_DAYS = 4;

interface BacklogParts extends Pick<QueryContext, "now" | "service"> {
  readonly db: Database["db"];
  readonly zoneIds: readonly number[];
  /** Rejects if this process lacks the key with which the database's pseudonyms were made. */
  readonly openKey: () => Promise<unknown>;
}

export type Backlog = Awaited<ReturnType<typeof readBacklog>>;

/** Returns the values under the names of their metrics. A value that is null is not shown. */
export async function readBacklog({ db, now, zoneIds, service, openKey }: BacklogParts) {
  // The conditions need the same rows.
  const scope = await openServiceScope({ db, now, service }, zoneIds);
  const status = await readServiceStatus(db, zoneIds, now - NEWEST_DAYS * DAY_MS);
  const gaps = await countGapHours(db, { fromMs: now - GAP_DAYS * DAY_MS, unwatched: UNPREVENTABLE });
  const undecided = await scope.once(readUndecided);
  const suspicions = await scope.once(readSuspicions);
  const reopened = await scope.once(readReopenedHours);
  const unjudged = await readUnjudgedZones(db, judgeableHours(now));
  const describe = ({ zoneId, newestAt }: (typeof status.zones)[number]) => {
    const isOwn = (one: { readonly zoneId: number }) => one.zoneId === zoneId;
    const waiting = unjudged.find(isOwn);
    return {
      zoneId,
      gap_hours: gaps.get(zoneId) ?? 0,
      ingest_lag_seconds: newestAt === null ? null : Math.max(0, (now - newestAt) / 1_000),
      hours_to_loss: hoursToLoss(undecided.find(isOwn)?.oldest),
      platform_suspect: suspicions.some(isOwn),
      hours_reopened: reopened.filter(isOwn).length,
      hours_unjudged: waiting?.hours ?? 0,
      unjudged_age_seconds: waiting === undefined ? null : (now - waiting.oldestAt) / 1_000,
    };
  };
  const channels = await scope.once(readChannelStatuses);
  const names = service.alerting().destinations.map(({ name }) => name);
  const archives = await readZoneArchives(db);
  const accounts = await readAccounts({ db, now, service });
  return {
    service: [
      {
        spikes_open: status.spikesOpen,
        notifications_pending: status.notificationsPending,
        channels_down: channels.filter(({ state }) => state !== "closed").length,
        pseudonym_key_missing: await openKey().then(
          () => false,
          () => true,
        ),
      },
    ],
    accounts: accounts.map(({ name, tokens, isPaused, refusedSince }) => ({
      ...labelAccount(accounts, name),
      edge_budget_tokens: tokens ?? Number.NaN,
      edge_paused: isPaused,
      edge_key_refused: refusedSince !== null,
    })),
    alerts: (await countOpenAlerts(db)).map(({ count, ...labels }) => ({ ...labels, alerts: count })),
    conditions: await countConditions(scope),
    channels: channels.map(({ channel, state, waiting, dead }) => ({
      channel,
      channel_circuit_open: state !== "closed",
      channel_notifications_pending: waiting,
      channel_notifications_dead: dead,
    })),
    destinations: (await sumDestinations(db, names, now)).map(
      ({ destination, health, oldestAt, ...one }) => ({
        destination,
        forward_failing: (health?.failingSince ?? null) !== null,
        forward_hours_open: one.hoursOpen,
        forward_hours_differing: one.hoursDiffering,
        forward_oldest_open_seconds: oldestAt === null ? 0 : (now - oldestAt) / 1_000,
        forward_events_refused: one.refused,
      }),
    ),
    archives: archives.map(({ zoneId, days, firstDay, checkedAt, damagedFiles }) => ({
      zoneId,
      archive_days: days,
      archive_oldest_day_timestamp_seconds: Date.parse(firstDay) / 1_000,
      archive_checked_timestamp_seconds: checkedAt / 1_000,
      archive_damaged_files: damagedFiles,
    })),
    archiveFiles: archives.flatMap(({ zoneId, eventBytes, recordBytes }) => [
      { zoneId, kind: "events", archive_bytes: eventBytes },
      { zoneId, kind: "records", archive_bytes: recordBytes },
    ]),
    zones: status.zones.map(describe),
  };
}

/** `zone_name` is set if the configuration file names the zone. */
export const ZONE = ["zone", "zone_name"] as const;

type Gauges = {
  readonly [Part in keyof Backlog]: {
    readonly labels: readonly string[];
    readonly help: Readonly<Partial<Record<keyof Backlog[Part][number], string>>>;
  };
};

const GAUGES: Gauges = {
  service: {
    labels: [],
    help: {
      spikes_open: "Spikes that have not closed.",
      notifications_pending: "Notifications that their channel has not accepted yet.",
      channels_down: "Channels that are not tried because they keep failing or are disabled.",
      pseudonym_key_missing:
        "1 while this process lacks the key with which the pseudonyms in the database were made.",
    },
  },
  // The label is missing if there is only one account, that of the EDGE_ variables.
  accounts: {
    labels: ["account"],
    help: {
      edge_budget_tokens: "Requests that all replicas together may send at once.",
      edge_paused: "1 while the requests for every zone are paused because the platform answered 429.",
      edge_key_refused: "1 while the platform refuses the access key for a zone.",
    },
  },
  alerts: { labels: ["state", "kind"], help: { alerts: "Alerts that are not resolved." } },
  conditions: {
    labels: ["condition"],
    help: {
      conditions: "How often a condition that `longwatch status` names needs attention, 0 if it does not.",
    },
  },
  channels: {
    labels: ["channel"],
    help: {
      channel_circuit_open: "1 while a channel is not tried because it keeps failing or is disabled.",
      channel_notifications_pending: "Pending notifications of a channel.",
      channel_notifications_dead: "Notifications that Longwatch gave up sending.",
    },
  },
  zones: {
    labels: ZONE,
    help: {
      ingest_lag_seconds: "Age of the newest stored event.",
      gap_hours: `Hours of the last ${GAP_DAYS} days that the platform forgot before they were proven complete.`,
      hours_to_loss: "Hours until the platform forgets the oldest unsealed hour.",
      platform_suspect:
        "1 while the platform's answers for the zone are held back, because they show none of the known events or contradict themselves.",
      hours_reopened: "Hours whose seal was withdrawn and that are not sealed again yet.",
      hours_unjudged: "Hours that are copied and that no detector has judged yet.",
      unjudged_age_seconds: "Age of the oldest hour that is copied and not judged.",
    },
  },
  archives: {
    labels: ZONE,
    help: {
      archive_days: "Days in the archive.",
      archive_oldest_day_timestamp_seconds: "Start of the oldest day in the archive.",
      archive_checked_timestamp_seconds:
        "When the file that was checked longest ago was compared with its hash.",
      archive_damaged_files: "Files that are missing or differ from their hash.",
    },
  },
  archiveFiles: { labels: [...ZONE, "kind"], help: { archive_bytes: "Size of the archive's files." } },
  destinations: {
    labels: ["destination"],
    help: {
      forward_failing: "1 while a destination of forwarded events accepts none.",
      forward_hours_open: "Sealed hours of the last 30 days that are not proven to have arrived yet.",
      forward_hours_differing: "Hours of the last 30 days that were sent twice and still differ.",
      forward_oldest_open_seconds:
        "Age of the oldest sealed hour of the last 30 days that has not arrived; 0 if every hour has.",
      forward_events_refused: "Events that a destination has refused and that were not sent again.",
    },
  },
};

export type CreateGauge = <Label extends string>(
  name: string,
  help: string,
  labels?: readonly Label[],
) => Gauge<Label>;

type Item = Readonly<Record<string, string | number | boolean | null>>;

/** Returns a function that sets every metric. A number that cannot be read is missing, or NaN if it has no label. */
export function createBacklogGauges(
  gauge: CreateGauge,
  labelsOf: (zoneId: number) => { zone: string; zone_name?: string },
): (backlog: Backlog | null) => void {
  const isReadable = gauge("backlog_readable", "1 if the numbers below could be read from the database.");
  const gauges = Object.entries(GAUGES).flatMap(([part, { labels, help }]) =>
    Object.entries(help).map(([name, text]) => ({ part, name, labels, gauge: gauge(name, text, labels) })),
  );
  return (backlog) => {
    isReadable.set(backlog === null ? 0 : 1);
    for (const { part, name, labels, gauge: metric } of gauges) {
      metric.reset();
      if (backlog === null && (labels.length === 0 || part === "accounts")) metric.set(Number.NaN);
      for (const item of (backlog?.[part as keyof Backlog] ?? []) as readonly Item[]) {
        const own = labels.flatMap((label) => (label in item ? [[label, String(item[label])]] : []));
        const zone = item["zoneId"] === undefined ? {} : labelsOf(Number(item["zoneId"]));
        const value = item[name] ?? null;
        if (value !== null) metric.set({ ...zone, ...Object.fromEntries(own) }, Number(value));
      }
    }
  };
}
