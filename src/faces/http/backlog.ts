/** The pending work of the whole service, as metrics that are read at every scrape. */
import { Gauge } from "prom-client";
import type { UNRESOLVED_STATES } from "#model/kinds.ts";

/** The pending work of the whole service, not of this process. It is read from the database at every scrape. */
export interface Backlog {
  readonly spikesOpen: number;
  /** Alerts that are not resolved. */
  readonly alerts: readonly {
    readonly state: (typeof UNRESOLVED_STATES)[number];
    readonly kind: string;
    readonly count: number;
  }[];
  /** True if this process lacks the key with which the database's pseudonyms were made. */
  readonly isKeyMissing: boolean;
  readonly notificationsPending: number;
  /** The request budget that all replicas share; null before the first request. */
  readonly requestBudget: { readonly tokens: number; readonly isPaused: boolean } | null;
  /** Every channel that has received a message. */
  readonly channels: readonly {
    readonly channel: string;
    readonly isOpen: boolean;
    readonly waiting: number;
    readonly dead: number;
  }[];
  /** The configured destinations of forwarded events. Hours are those of the last 30 days. */
  readonly destinations: readonly {
    readonly destination: string;
    readonly isFailing: boolean;
    /** Sealed hours and gaps that have not arrived, without those that differ. */
    readonly hoursOpen: number;
    readonly hoursDiffering: number;
    /** Age of the oldest of them; null if every hour has arrived. */
    readonly oldestSeconds: number | null;
    readonly refused: number;
  }[];
  /** The zones that have archive days. */
  readonly archives: readonly {
    readonly zoneId: number;
    readonly days: number;
    /** `yyyy-mm-dd`. */
    readonly firstDay: string;
    readonly eventBytes: number;
    readonly recordBytes: number;
    /** Epoch ms. */
    readonly checkedAt: number;
    readonly damagedFiles: number;
  }[];
  readonly zones: readonly {
    readonly zoneId: number;
    /** Age of the newest stored event; null before the first event. */
    readonly ingestLagSeconds: number | null;
    /** Hours until the platform deletes the oldest hour that is not sealed; null if all hours are sealed. */
    readonly hoursToLoss: number | null;
    /** True while the platform's answers for the zone are not trusted. */
    readonly isSuspect: boolean;
    /** Hours whose seal was withdrawn and that are not sealed again. */
    readonly hoursReopened: number;
    /** Hours that are copied and not judged, and the age of the oldest of them; null without any. */
    readonly hoursUnjudged: number;
    readonly unjudgedSeconds: number | null;
    /** Gaps of the last 30 days. */
    readonly gapHours: number;
  }[];
}

/** `zone_name` is set if the configuration file names the zone. */
export const ZONE = ["zone", "zone_name"] as const;

export type CreateGauge = <Label extends string>(
  name: string,
  help: string,
  labels?: readonly Label[],
) => Gauge<Label>;

export function createBacklogGauges(
  gauge: CreateGauge,
  labelsOf: (zoneId: number) => { zone: string; zone_name?: string },
) {
  const isReadable = gauge("backlog_readable", "1 if the numbers below could be read from the database.");
  const spikesOpen = gauge("spikes_open", "Spikes that have not closed.");
  const alerts = gauge("alerts", "Alerts that are not resolved.", ["state", "kind"]);
  const channelsDown = gauge(
    "channels_down",
    "Channels that are not tried because they keep failing or are disabled.",
  );
  const keyMissing = gauge(
    "pseudonym_key_missing",
    "1 while this process lacks the key with which the pseudonyms in the database were made.",
  );
  const gapHours = gauge(
    "gap_hours",
    "Hours of the last 30 days that the platform forgot before they were proven complete.",
    ZONE,
  );
  const notificationsPending = gauge(
    "notifications_pending",
    "Notifications that their channel has not accepted yet.",
  );
  const circuitOpen = gauge(
    "channel_circuit_open",
    "1 while a channel is not tried because it keeps failing or is disabled.",
    ["channel"],
  );
  const waiting = gauge("channel_notifications_pending", "Pending notifications of a channel.", ["channel"]);
  const dead = gauge("channel_notifications_dead", "Notifications that Longwatch gave up sending.", [
    "channel",
  ]);
  const edgeTokens = gauge("edge_budget_tokens", "Requests that all replicas together may send at once.");
  const edgePaused = gauge(
    "edge_paused",
    "1 while the requests for every zone are paused because the platform answered 429.",
  );
  const ingestLag = gauge("ingest_lag_seconds", "Age of the newest stored event.", ZONE);
  const hoursToLoss = gauge(
    "hours_to_loss",
    "Hours until the platform forgets the oldest unsealed hour.",
    ZONE,
  );
  const suspect = gauge(
    "platform_suspect",
    "1 while the platform's answers for the zone are held back, because they show none of the known events or contradict themselves.",
    ZONE,
  );
  const reopened = gauge(
    "hours_reopened",
    "Hours whose seal was withdrawn and that are not sealed again yet.",
    ZONE,
  );
  const unjudged = gauge(
    "hours_unjudged",
    "Hours that are copied and that no detector has judged yet.",
    ZONE,
  );
  const unjudgedAge = gauge(
    "unjudged_age_seconds",
    "Age of the oldest hour that is copied and not judged.",
    ZONE,
  );
  const setArchives = createArchiveGauges(gauge, labelsOf);
  const setDestinations = createDestinationGauges(gauge);

  return {
    set(backlog: Backlog | null): void {
      setArchives(backlog?.archives ?? []);
      setDestinations(backlog?.destinations ?? []);
      isReadable.set(backlog === null ? 0 : 1);
      const ofZones = [suspect, reopened, ingestLag, hoursToLoss, gapHours, unjudged, unjudgedAge];
      for (const part of [...ofZones, circuitOpen, waiting, dead, alerts]) part.reset();
      for (const { count, ...labels } of backlog?.alerts ?? []) alerts.set(labels, count);
      channelsDown.set(backlog?.channels.filter(({ isOpen }) => isOpen).length ?? Number.NaN);
      keyMissing.set(backlog === null ? Number.NaN : Number(backlog.isKeyMissing));
      spikesOpen.set(backlog?.spikesOpen ?? Number.NaN);
      notificationsPending.set(backlog?.notificationsPending ?? Number.NaN);
      edgeTokens.set(backlog?.requestBudget?.tokens ?? Number.NaN);
      edgePaused.set(backlog === null ? Number.NaN : Number(backlog.requestBudget?.isPaused ?? false));
      for (const { channel, ...ofChannel } of backlog?.channels ?? []) {
        circuitOpen.set({ channel }, Number(ofChannel.isOpen));
        waiting.set({ channel }, ofChannel.waiting);
        dead.set({ channel }, ofChannel.dead);
      }
      for (const {
        zoneId,
        ingestLagSeconds,
        hoursToLoss: hours,
        gapHours: lost,
        ...doubt
      } of backlog?.zones ?? []) {
        const labels = labelsOf(zoneId);
        if (ingestLagSeconds !== null) ingestLag.set(labels, ingestLagSeconds);
        gapHours.set(labels, lost);
        if (hours !== null) hoursToLoss.set(labels, hours);
        suspect.set(labels, Number(doubt.isSuspect));
        reopened.set(labels, doubt.hoursReopened);
        unjudged.set(labels, doubt.hoursUnjudged);
        if (doubt.unjudgedSeconds !== null) unjudgedAge.set(labels, doubt.unjudgedSeconds);
      }
    },
  };
}

function createArchiveGauges(
  gauge: CreateGauge,
  labelsOf: (zoneId: number) => { zone: string; zone_name?: string },
): (archives: Backlog["archives"]) => void {
  const days = gauge("archive_days", "Days in the archive.", ZONE);
  const bytes = gauge("archive_bytes", "Size of the archive's files.", [...ZONE, "kind"]);
  const oldest = gauge(
    "archive_oldest_day_timestamp_seconds",
    "Start of the oldest day in the archive.",
    ZONE,
  );
  const checked = gauge(
    "archive_checked_timestamp_seconds",
    "When the file that was checked longest ago was compared with its hash.",
    ZONE,
  );
  const damaged = gauge("archive_damaged_files", "Files that are missing or differ from their hash.", ZONE);
  return (archives) => {
    for (const part of [days, bytes, oldest, checked, damaged]) part.reset();
    for (const { zoneId, ...archive } of archives) {
      const labels = labelsOf(zoneId);
      days.set(labels, archive.days);
      bytes.set({ ...labels, kind: "events" }, archive.eventBytes);
      bytes.set({ ...labels, kind: "records" }, archive.recordBytes);
      oldest.set(labels, Date.parse(archive.firstDay) / 1_000);
      checked.set(labels, archive.checkedAt / 1_000);
      damaged.set(labels, archive.damagedFiles);
    }
  };
}

function createDestinationGauges(gauge: CreateGauge): (destinations: Backlog["destinations"]) => void {
  const of = (name: string, help: string) => gauge(`forward_${name}`, help, ["destination"]);
  const failing = of("failing", "1 while a destination of forwarded events accepts none.");
  const open = of("hours_open", "Sealed hours of the last 30 days that are not proven to have arrived yet.");
  const differing = of("hours_differing", "Hours of the last 30 days that were sent twice and still differ.");
  const oldest = of(
    "oldest_open_seconds",
    "Age of the oldest sealed hour of the last 30 days that has not arrived; 0 if every hour has.",
  );
  const refused = of("events_refused", "Events that a destination has refused and that were not sent again.");
  return (destinations) => {
    for (const part of [failing, open, differing, oldest, refused]) part.reset();
    for (const { destination, ...one } of destinations) {
      failing.set({ destination }, Number(one.isFailing));
      open.set({ destination }, one.hoursOpen);
      differing.set({ destination }, one.hoursDiffering);
      oldest.set({ destination }, one.oldestSeconds ?? 0);
      refused.set({ destination }, one.refused);
    }
  };
}
