import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What the whole service, not this process, still has to do: read from the database when somebody scrapes. */
export interface Backlog {
  readonly spikesOpen: number;
  readonly notificationsPending: number;
  /** The request budget that all replicas share; null before the first request. */
  readonly requestBudget: { readonly tokens: number; readonly isPaused: boolean } | null;
  /** Every channel that was ever sent to. */
  readonly channels: readonly {
    readonly channel: string;
    readonly isOpen: boolean;
    readonly waiting: number;
    readonly dead: number;
  }[];
  readonly zones: readonly {
    readonly zoneId: number;
    /** Age of the newest stored event; null before the first. */
    readonly ingestLagSeconds: number | null;
    /** Until the platform forgets the oldest hour that is not sealed; null when all are. */
    readonly hoursToLoss: number | null;
    /** A route of the platform shows less than before, so no hour of the zone is sealed. */
    readonly isSuspect: boolean;
    /** Hours whose seal was withdrawn and that are not sealed again. */
    readonly hoursReopened: number;
  }[];
}

export interface JobRun {
  readonly job: string;
  readonly outcome: "done" | "retry" | "give-up" | "wait";
  readonly durationMs: number;
  /** Epoch milliseconds. */
  readonly endedAt: number;
}

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Every metric of the service, in a registry of its own. Labels are closed sets; the only ids are configured zones.
 * Text or addresses from events must never become a label.
 */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });

  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name: `longwatch_${name}`, help, labelNames, registers: [registry] });
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge({ name: `longwatch_${name}`, help, labelNames, registers: [registry] });

  const jobRuns = counter("job_runs_total", "Attempts of background jobs.", ["job", "outcome"]);
  const jobDuration = new Histogram({
    name: "longwatch_job_duration_seconds",
    help: "How long an attempt took.",
    labelNames: ["job"],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300],
    registers: [registry],
  });
  const jobLastSuccess = gauge("job_last_success_timestamp_seconds", "When a job last ended well.", ["job"]);
  const httpRequests = counter("http_requests_total", "Requests that were answered.", ["route", "status"]);
  const httpDuration = new Histogram({
    name: "longwatch_http_request_duration_seconds",
    help: "How long an answer took.",
    labelNames: ["route"],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 20],
    registers: [registry],
  });
  const backlog = createBacklogGauges(gauge);

  return {
    /** route: list or search; result: as the ingest job names it. */
    pages: counter("pages_total", "Pages of the platform that were read.", ["route", "zone", "result"]),
    /** result: new, known, quarantined or held (back, because the pseudonym key is missing). */
    events: counter("events_total", "Entries in the pages that were read.", ["zone", "route", "result"]),
    edgeRequests: counter("edge_requests_total", "Attempts of calls to the platform.", [
      "operation",
      "outcome",
    ]),
    edgeWaited: counter(
      "edge_requests_waited_seconds_total",
      "Time that calls stood in line for the request budget.",
    ),
    edgeBudgetLocal: gauge(
      "edge_budget_local",
      "1 while the shared request budget does not answer and this process spends a quarter of the rate.",
    ),
    notifications: counter("notifications_total", "Attempts to notify a channel.", ["channel", "outcome"]),
    digested: counter(
      "notifications_digested_total",
      "Notifications that were sent in a digest, because their channel's rate was spent.",
      ["channel"],
    ),
    queueRingFailures: counter("queue_ring_failures_total", "Nudges that the queue's store did not take."),
    jobEnded({ job, outcome, durationMs, endedAt }: JobRun): void {
      jobRuns.inc({ job, outcome });
      jobDuration.observe({ job }, durationMs / 1_000);
      if (outcome === "done") jobLastSuccess.set({ job }, endedAt / 1_000);
    },
    /** `route` is the pattern of a route, never an address that somebody asked for. */
    requestEnded({ route, status, durationMs }: { route: string; status: number; durationMs: number }): void {
      httpRequests.inc({ route, status });
      httpDuration.observe({ route }, durationMs / 1_000);
    },
    /** Null when it could not be read: no number is better than an old one. */
    setBacklog: (read: Backlog | null): void => backlog.set(read),
    contentType: registry.contentType,
    render: (): Promise<string> => registry.metrics(),
  };
}

type CreateGauge = <Label extends string>(
  name: string,
  help: string,
  labels?: readonly Label[],
) => Gauge<Label>;

function createBacklogGauges(gauge: CreateGauge) {
  const isReadable = gauge("backlog_readable", "1 when the numbers below could be read from the database.");
  const spikesOpen = gauge("spikes_open", "Spikes that have not closed.");
  const notificationsPending = gauge(
    "notifications_pending",
    "Notifications that their channel has not taken.",
  );
  const circuitOpen = gauge(
    "channel_circuit_open",
    "1 while a channel is not tried: it keeps failing, or is disabled.",
    ["channel"],
  );
  const waiting = gauge("channel_notifications_pending", "Notifications that wait for a channel.", [
    "channel",
  ]);
  const dead = gauge("channel_notifications_dead", "Notifications that were given up.", ["channel"]);
  const edgeTokens = gauge("edge_budget_tokens", "Requests that all replicas together may send at once.");
  const edgePaused = gauge("edge_paused", "1 while the platform asked for silence (429).");
  const ingestLag = gauge("ingest_lag_seconds", "Age of the newest stored event.", ["zone"]);
  const hoursToLoss = gauge("hours_to_loss", "Hours until the platform forgets the oldest unsealed hour.", [
    "zone",
  ]);
  const suspect = gauge(
    "platform_suspect",
    "1 while the platform shows less of the zone than before, so that no hour is sealed.",
    ["zone"],
  );
  const reopened = gauge("hours_reopened", "Hours whose seal was withdrawn and that are not sealed again.", [
    "zone",
  ]);

  return {
    set(backlog: Backlog | null): void {
      isReadable.set(backlog === null ? 0 : 1);
      for (const part of [suspect, reopened, ingestLag, hoursToLoss, circuitOpen, waiting, dead])
        part.reset();
      spikesOpen.set(backlog?.spikesOpen ?? Number.NaN);
      notificationsPending.set(backlog?.notificationsPending ?? Number.NaN);
      edgeTokens.set(backlog?.requestBudget?.tokens ?? Number.NaN);
      edgePaused.set(backlog === null ? Number.NaN : Number(backlog.requestBudget?.isPaused ?? false));
      for (const { channel, ...standing } of backlog?.channels ?? []) {
        circuitOpen.set({ channel }, Number(standing.isOpen));
        waiting.set({ channel }, standing.waiting);
        dead.set({ channel }, standing.dead);
      }
      for (const { zoneId, ingestLagSeconds, hoursToLoss: hours, ...doubt } of backlog?.zones ?? []) {
        const { isSuspect, hoursReopened } = doubt;
        const zone = String(zoneId);
        if (ingestLagSeconds !== null) ingestLag.set({ zone }, ingestLagSeconds);
        if (hours !== null) hoursToLoss.set({ zone }, hours);
        suspect.set({ zone }, Number(isSuspect));
        reopened.set({ zone }, hoursReopened);
      }
    },
  };
}
