import { createNewestRecords } from "#archive/rules/records/find-records.ts";
import type { VerifyCrawler } from "#detection/rules/verdict/crawlers.ts";
import type { DiskSpace } from "#lib/disk.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type Schedule, TICK_NAMES, TICKS, type Tick, type TickName } from "#model/schedule.ts";
import type { Retention } from "#people/rules/retention.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";
import { type AnyJob, coalesceCalls } from "#store/queue/define-job.ts";
import { createFetchAdviceJob } from "./alerts/fetch-advice.ts";
import { createRaiseAlertsJob } from "./alerts/raise-alerts.ts";
import { createReportServiceJob } from "./alerts/report-service.ts";
import { createSendDigestJob, type SendDigestDeps } from "./alerts/send-digest.ts";
import { createArchiveDaysJob } from "./archive/archive-days.ts";
import type { ArchiveStore } from "./archive/archive-store.ts";
import type { JobContext } from "./context.ts";
import { createDeliverAlertsJob } from "./delivery/deliver-alerts.ts";
import { createForwardEventsJob, type ForwardEventsDeps } from "./delivery/forwarding/forward-events.ts";
import type { Fallback } from "./delivery/send-delivery.ts";
import { createDetectRuleChangesJob } from "./detection/detect-rule-changes.ts";
import { createDetectSourcesJob } from "./detection/detect-sources.ts";
import { createDetectSpikesJob } from "./detection/detect-spikes.ts";
import { createJudgeConditionsJob } from "./detection/judge-conditions.ts";
import { createJudgeLateJob } from "./detection/judge-late.ts";
import { createJudgeVerdictsJob } from "./detection/judge-verdicts.ts";
import { createLearnUsualJob } from "./detection/learn-usual.ts";
import { createAfterRollUp, createRollUpTrendsJob } from "./detection/roll-up-trends.ts";
import { createSnapshotRuleMetricsJob } from "./detection/snapshot-rule-metrics.ts";
import { createWatchPlansJob, type WatchPlansDeps } from "./detection/watch-plans.ts";
import { createManagePartitionsJob } from "./health/manage-partitions.ts";
import { createRunJobs, type ExecuteRun } from "./health/run-requested.ts";
import { createSendHeartbeatJob, type Heartbeat } from "./health/send-heartbeat.ts";
import { createSweepJob } from "./health/sweep.ts";
import { createPollEventsJob } from "./ingest/poll-events.ts";
import { createJudgeHeldJob } from "./ingest/retry-quarantined.ts";
import { createWalkDaysJob } from "./ingest/walk-days.ts";
import { createEraseLeftoversJob, createPseudonymiseIpsJob } from "./people/pseudonymise-ips.ts";
import { createReconcileCountsJob } from "./proof/reconcile-counts.ts";
import { createRepairWindowJob } from "./proof/repair-window.ts";
import { createSealWindowsJob } from "./proof/seal-windows.ts";

/** Times and limits of the jobs. */
export interface JobSettings {
  readonly schedule: Schedule;
  /** The longest time between two polls of one zone. */
  readonly pollEveryMs: number;
  /** The newest minutes are read again when the last read is older than this. */
  readonly freshMs: number;
  /** The zones of each account, which share a request budget. */
  readonly polled: readonly {
    readonly zoneIds: readonly number[];
    /** The most zones that one run of the tick polls. */
    readonly mostPolls: number;
    /** The most requests that further polls of rising zones may take every ten seconds; 0 for none. */
    readonly risingRequests: number;
  }[];
  /** Period of the short passes over today's list while they bring nothing new. */
  readonly shortPassEveryMs: number;
  /** The list is read for a zone's late events when its last reading is older than this. */
  readonly lateEveryMs: number;
  /** The age of a sealed hour at which its last comparison is added to its evidence. */
  readonly lastProofMs: number;
  readonly advicePerHour: number;
  readonly retention: Retention;
  /** How many days Postgres keeps archive days. Null: as long as the events are kept. */
  readonly hotDays: number | null;
  /** How long after its end a day is archived, for demonstrations. Null: when the platform has forgotten the day. */
  readonly archiveAfterMs: number | null;
  /** Null: messages for a failing channel are not copied to another one. */
  readonly fallback: Fallback | null;
}

export interface JobsDeps
  extends Pick<
    JobContext,
    | "database"
    | "partitions"
    | "erasures"
    | "openKey"
    | "clock"
    | "log"
    | "observer"
    | "notifiers"
    | "routing"
    | "sensitivity"
    | "lowestFloor"
    | "settingsOf"
    | "sourceMode"
    | "knownSources"
    | "conditions"
    | "actions"
    | "zoneIds"
  > {
  readonly edge: EdgeClient;
  /** The same client for calls that let calls for the newest minutes go first. */
  readonly patientEdge: EdgeClient;
  /** Null or left out: no day is archived. */
  readonly archive?: ArchiveStore | null;
  /** Null or left out: no saved plan is watched. */
  readonly readRequests?: WatchPlansDeps["readRequests"] | null;
  /** Executes backfills and verifications that the API was asked for. Null or left out: nobody executes them here. */
  readonly executeRun?: ExecuteRun | null;
  /** Returns the disk space of the embedded Postgres. Null or left out for another server. */
  readonly readDisk?: (() => DiskSpace | null) | null;
  /** Null or left out: no crawler is verified. */
  readonly verifyCrawler?: VerifyCrawler | null;
  readonly digestChannels: SendDigestDeps["digestChannels"];
  readonly readWeek: SendDigestDeps["readWeek"];
  /** Null or left out if no external monitor is configured. */
  readonly heartbeat?: Heartbeat | null;
  /** Null or left out if no destination is configured. */
  readonly forwarding?: Pick<
    ForwardEventsDeps,
    "destinations" | "readStored" | "ocsf" | "onForwarded"
  > | null;
  readonly settings: JobSettings;
  /** Called with each delivered digest's channel and number of messages. */
  readonly onDigest: (channel: string, messages: number) => void;
  /** Enqueues a job by name. */
  readonly enqueue: (job: string, payload?: Record<string, unknown>) => Promise<boolean>;
}

/** Returns every job, in the order in which data passes them from event to notification. */
export function createJobs(deps: JobsDeps): readonly AnyJob[] {
  const { settings, enqueue, heartbeat = null, archive = null, executeRun = null, forwarding = null } = deps;
  const { readRequests = null } = deps;
  // Many pages arrive per second. One roll-up for several of them is enough.
  const afterPage = coalesceCalls(() => enqueue("roll-up-trends"), 500);
  const detect = async () => void (await Promise.all([enqueue("detect-spikes"), enqueue("detect-sources")]));
  // Both judge the running minute, too. The polls of a tick come in groups of eight, and one judgement after each group is
  // enough. The detector of rules reads all zones, so with many zones it judges less often.
  const pauseMs = Math.max(deps.zoneIds.length * 100, 1_000);
  const judgeConditions = coalesceCalls(() => enqueue("judge-conditions"), 5_000);
  const afterRollUp = createAfterRollUp(deps, {
    soon: coalesceCalls(detect, Math.min(pauseMs, 2_000)),
    judgeNow: coalesceCalls(detect, Math.min(pauseMs, 10_000)),
    later: coalesceCalls(detect, 10_000),
  });
  // Several jobs that change spikes or hours end at the same time. One run after them is enough.
  const raiseAlerts = coalesceCalls(() => enqueue("raise-alerts"), 250);
  const raiseSoon = coalesceCalls(() => enqueue("raise-alerts"), 500);
  const fetchAdvice = coalesceCalls(() => enqueue("fetch-advice"), 250);
  // First, because a message waits a little for its verdict.
  const judgeVerdicts = coalesceCalls(() => enqueue("judge-verdicts"), 250);
  const afterSpikes = () => {
    judgeVerdicts();
    raiseAlerts();
    fetchAdvice();
  };
  const afterAlerts = async () => void (await enqueue("deliver-alerts"));
  const newestRecords = createNewestRecords();
  const overlapMs = Math.max(3 * MINUTE_MS, 2 * settings.pollEveryMs);
  const ingest = { ...deps, afterPage, settleMs: SETTLE_MS };
  const proof = { ...ingest, edge: deps.patientEdge };
  return [
    createManagePartitionsJob({ ...deps, archive, retention: settings.retention, hotDays: settings.hotDays }),
    createPseudonymiseIpsJob({ ...deps, ipDays: settings.retention.ipDays }),
    createEraseLeftoversJob(deps),
    createPollEventsJob({ ...ingest, newestRecords, overlapMs, freshMs: settings.freshMs }),
    createWalkDaysJob({
      ...proof,
      fullEveryMs: 15 * MINUTE_MS,
      idleFullEveryMs: 60 * MINUTE_MS,
      shortEveryMs: settings.shortPassEveryMs,
    }),
    createReconcileCountsJob({
      ...proof,
      overlapMs,
      lateEveryMs: settings.lateEveryMs,
      lastProofMs: settings.lastProofMs,
      afterMissing: (zoneId) => enqueue("repair-window", { zoneId }),
      afterMatch: (zoneId) => enqueue("seal-windows", { zoneId }),
    }),
    createJudgeHeldJob(ingest),
    createRepairWindowJob({ ...ingest, afterRepair: (zoneId) => enqueue("reconcile-counts", { zoneId }) }),
    createSealWindowsJob({ ...ingest, afterSeal: raiseAlerts }),
    createRollUpTrendsJob({
      ...deps,
      afterRollUp: (...rolled) => {
        judgeConditions();
        return afterRollUp(...rolled);
      },
    }),
    createSnapshotRuleMetricsJob({ ...deps, edge: deps.patientEdge }),
    ...(archive === null
      ? []
      : [createArchiveDaysJob({ ...deps, archive, settledAfterMs: settings.archiveAfterMs })]),
    ...(executeRun === null ? [] : createRunJobs({ ...deps, executeRun })),
    createDetectSpikesJob({ ...deps, afterSpikes }),
    createDetectSourcesJob({ ...deps, afterSpikes }),
    createDetectRuleChangesJob({ ...deps, afterSpikes }),
    createJudgeConditionsJob({ ...deps, afterSpikes }),
    createJudgeLateJob({ ...deps, afterAlerts }),
    createJudgeVerdictsJob({
      ...deps,
      newestRecords,
      learnUsual: (zoneId) => enqueue("learn-usual", { zoneId }),
      afterVerdicts: raiseAlerts,
    }),
    createLearnUsualJob({ ...deps, archive, ipDays: settings.retention.ipDays }),
    ...(readRequests === null ? [] : [createWatchPlansJob({ ...deps, readRequests })]),
    createFetchAdviceJob({
      ...deps,
      budgetPerHour: settings.advicePerHour,
      afterAdvice: raiseAlerts,
    }),
    createRaiseAlertsJob({
      ...deps,
      afterAlerts,
      whileAwaited() {
        judgeVerdicts();
        raiseSoon();
      },
    }),
    createDeliverAlertsJob({ ...deps, fallback: settings.fallback }),
    ...(forwarding === null
      ? []
      : [
          createForwardEventsJob({
            ...deps,
            ...forwarding,
            eventDays: settings.retention.eventDays,
            again: (destination) => enqueue("forward-events", { destination }),
          }),
        ]),
    createReportServiceJob({
      ...deps,
      destinations: [...(forwarding?.destinations.keys() ?? [])],
      pollEveryMs: settings.pollEveryMs,
      afterAlerts,
    }),
    createSendDigestJob({ ...deps, expression: settings.schedule["send-digest"], afterAlerts }),
    ...(heartbeat === null
      ? []
      : [createSendHeartbeatJob({ ...deps, heartbeat, pollEveryMs: settings.pollEveryMs })]),
    createSweepJob({ ...deps, polled: settings.polled }),
  ];
}

/** A scheduled enqueue of a job with each of these payloads. */
export interface PlannedTick {
  readonly job: TickName;
  readonly expression: string;
  readonly groups: readonly {
    readonly payloads: readonly Record<string, unknown>[];
    /** The most payloads of one run. With more, the payloads of the group take turns. */
    readonly most: number;
  }[];
}

/** Returns the ticks of these zones and destinations. */
export function planTicks(
  {
    zoneIds,
    destinations,
  }: { readonly zoneIds: readonly number[]; readonly destinations: readonly string[] },
  { schedule, polled }: Pick<JobSettings, "schedule" | "polled">,
): readonly PlannedTick[] {
  const ofZones = (ids: readonly number[]) => ids.map((zoneId) => ({ zoneId }));
  const polls = polled.map((one) => ({ payloads: ofZones(one.zoneIds), most: one.mostPolls }));
  const payloads: Record<NonNullable<Tick["per"]> | "once", readonly Record<string, unknown>[]> = {
    zone: ofZones(zoneIds),
    destination: destinations.map((destination) => ({ destination })),
    once: [{}],
  };
  return TICK_NAMES.map((job) => {
    const { per }: Tick = TICKS[job];
    const all = [{ payloads: payloads[per ?? "once"], most: Number.POSITIVE_INFINITY }];
    return { job, expression: schedule[job], groups: job === "poll-events" ? polls : all };
  });
}
