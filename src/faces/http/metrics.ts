/** The metrics of the service and their route. */

import type { FastifyInstance } from "fastify";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { z } from "zod";
import { readVersion } from "#config/read-version.ts";
import { toError } from "#lib/errors.ts";
import { within } from "#lib/waiting.ts";
import { type Zones, zoneFactsOf } from "#model/zones.ts";
import { Refusal } from "#operations/refusal.ts";
import type { JobRuns } from "#operations/service-life.ts";
import { type Backlog, type CreateGauge, createBacklogGauges, ZONE } from "./backlog.ts";

interface JobRun {
  readonly job: string;
  readonly outcome: "done" | "retry" | "give-up" | "wait";
  readonly durationMs: number;
  /** Epoch milliseconds. */
  readonly endedAt: number;
}

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Period of the timer that measures event loop delays. The measured delays include it. The default of 10 ms would cost
 * a third of a percent of a core.
 */
const LAG_PERIOD_MS = 100;

/**
 * Creates every metric of the service, in its own registry. Labels are closed sets; the only ids are configured zones.
 * A text or an address from an event must never become a label. `readZones` returns current names and labels.
 */
export function createMetrics(readZones: () => Zones | undefined = () => undefined) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_PERIOD_MS });

  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name: `longwatch_${name}`, help, labelNames, registers: [registry] });
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge({ name: `longwatch_${name}`, help, labelNames, registers: [registry] });
  const histogram = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly Label[],
  ) => new Histogram({ name: `longwatch_${name}`, help, labelNames, buckets, registers: [registry] });

  const jobRuns = counter("job_runs_total", "Attempts of background jobs.", ["job", "outcome"]);
  const jobDuration = histogram(
    "job_duration_seconds",
    "Duration of an attempt.",
    [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300],
    ["job"],
  );
  const jobLastSuccess = gauge("job_last_success_timestamp_seconds", "When a job last succeeded.", ["job"]);
  const httpRequests = counter("http_requests_total", "Requests that were answered.", ["route", "status"]);
  const httpDuration = histogram(
    "http_request_duration_seconds",
    "Duration of a request.",
    [0.005, 0.025, 0.1, 0.5, 1, 5, 20],
    ["route"],
  );
  const labelsOf = (zoneId: number) => {
    const { zoneName } = zoneFactsOf(readZones(), zoneId);
    return { zone: String(zoneId), ...(zoneName === undefined ? {} : { zone_name: zoneName }) };
  };
  const setBacklog = createBacklogGauges(gauge, labelsOf);
  const reloads = createReloadMetrics(counter, gauge);
  gauge("build_info", "Always 1. The labels name the running version and its Node version.", [
    "version",
    "node",
  ]).set({ version: readVersion(), node: process.versions.node }, 1);

  return {
    /** The labels of a metric that is about one zone. */
    labelsOf,
    /** `route`: list or search. `result`: the ingest job's word. */
    pages: counter("pages_total", "Pages of the platform that were read.", ["route", ...ZONE, "result"]),
    /** `result`: new, known, quarantined or held (the pseudonym key is missing). */
    events: counter("events_total", "Entries in the pages that were read.", [...ZONE, "route", "result"]),
    /** `account` is missing if there is only that of the EDGE_ variables. */
    edgeRequests: counter("edge_requests_total", "Attempts of calls to the platform.", [
      "operation",
      "outcome",
      "account",
    ]),
    /** `priority`: normal or low. */
    edgeWait: histogram(
      "edge_budget_wait_seconds",
      "Time that an attempt waited for the request budget.",
      [0.001, 0.01, 0.1, 0.5, 1, 5, 15, 30, 60],
      ["priority"],
    ),
    pageCommit: histogram(
      "page_commit_duration_seconds",
      "Duration of the transaction that stores a page.",
      [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      ["route"],
    ),
    edgeBudgetLocal: gauge(
      "edge_budget_local",
      "1 while the shared request budget does not answer. This process then uses a quarter of the rate.",
    ),
    notifications: counter("notifications_total", "Attempts to notify a channel.", ["channel", "outcome"]),
    notificationDuration: histogram(
      "notification_duration_seconds",
      "Duration of an attempt to notify a channel.",
      [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      ["channel"],
    ),
    digested: counter(
      "notifications_digested_total",
      "Notifications that were sent in a digest because the rate limit of their channel was reached.",
      ["channel"],
    ),
    forwarded: counter("forwarded_events_total", "Events that a destination has acknowledged or refused.", [
      "destination",
      "result",
    ]),
    enqueueFailures: counter(
      "queue_enqueue_failures_total",
      "Jobs that could not be enqueued because the queue's store did not accept them.",
    ),
    jobEnded({ job, outcome, durationMs, endedAt }: JobRun): void {
      jobRuns.inc({ job, outcome });
      jobDuration.observe({ job }, durationMs / 1_000);
      if (outcome === "done") jobLastSuccess.set({ job }, endedAt / 1_000);
    },
    /** Attempts of each job in this process. */
    async readJobRuns(): Promise<JobRuns[]> {
      const [runs, durations, successes] = await Promise.all([
        jobRuns.get(),
        jobDuration.get(),
        jobLastSuccess.get(),
      ]);
      const sumOf = (job: unknown, part: string) =>
        durations.values.find(
          ({ labels, metricName }) => labels["job"] === job && metricName?.endsWith(part) === true,
        )?.value ?? 0;
      return [...Map.groupBy(runs.values, ({ labels }) => String(labels["job"]))].map(([job, values]) => {
        const success = successes.values.find(({ labels }) => labels["job"] === job);
        const count = sumOf(job, "_count");
        return {
          job,
          runs: Object.fromEntries(values.map(({ labels, value }) => [String(labels["outcome"]), value])),
          meanSeconds: count === 0 ? null : sumOf(job, "_sum") / count,
          lastSuccessAt: success === undefined ? null : success.value * 1_000,
        };
      });
    },
    /** `route` is the pattern of a route, never a requested address. */
    requestEnded({ route, status, durationMs }: { route: string; status: number; durationMs: number }): void {
      httpRequests.inc({ route, status });
      httpDuration.observe({ route }, durationMs / 1_000);
    },
    /** Counts a reload of the configuration file, which was applied or refused. */
    configReloaded: (result: "taken" | "refused"): void => reloads.note(result),
    /** Sets the backlog. Null if it could not be read: a missing number is better than an old one. */
    setBacklog,
    contentType: registry.contentType,
    render(): Promise<string> {
      describeZones(registry, readZones() ?? {});
      return registry.metrics();
    },
  };
}

/** Adds the zones' labels, to join by `zone`. Created anew, because a reload may change the names of labels. */
function describeZones(registry: Registry, zones: Zones): void {
  const name = "longwatch_zone_info";
  registry.removeSingleMetric(name);
  const help = "Always 1. The labels are the name and the labels of a zone in the configuration file.";
  const own = Object.values(zones).flatMap(({ labels }) => Object.keys(labels));
  const info = new Gauge({ name, help, labelNames: [...ZONE, ...new Set(own)], registers: [registry] });
  for (const [zone, { name: zoneName, labels }] of Object.entries(zones))
    info.set({ ...labels, zone, ...(zoneName === null ? {} : { zone_name: zoneName }) }, 1);
}

/** Creates the metrics of reloads, with the names that Prometheus uses for its own configuration. */
function createReloadMetrics(counter: CreateCounter, gauge: CreateGauge) {
  const reloads = counter(
    "config_reloads_total",
    "Number of times that the configuration file was read again.",
    ["result"],
  );
  const isTaken = gauge(
    "config_last_reload_successful",
    "0 if the configuration file was refused when it was last read.",
  );
  const takenAt = gauge(
    "config_last_reload_success_timestamp_seconds",
    "When the configuration in use was read.",
  );
  for (const result of ["taken", "refused"]) reloads.inc({ result }, 0);
  isTaken.set(1);
  takenAt.setToCurrentTime();
  return {
    note(result: "taken" | "refused"): void {
      reloads.inc({ result });
      isTaken.set(result === "taken" ? 1 : 0);
      if (result === "taken") takenAt.setToCurrentTime();
    },
  };
}

type CreateCounter = <Label extends string>(
  name: string,
  help: string,
  labels?: readonly Label[],
) => Counter<Label>;

const schema = {
  tags: ["Service"],
  summary: "Show metrics in the Prometheus text format",
  response: { 200: { content: { "text/plain": { schema: z.string() } } } },
};

interface MetricsRoute {
  readonly metrics: Metrics;
  readonly readBacklog: () => Promise<Backlog>;
  /** If false, a key with the scope read for all zones is required. */
  readonly isPublic: boolean;
  readonly timeoutMs: number;
  readonly onError: (name: string, error: Error) => void;
}

/** Serves the metrics for Prometheus. The process's own metrics work without the database. */
export function addMetrics(
  app: FastifyInstance,
  { metrics, readBacklog, isPublic, timeoutMs, onError }: MetricsRoute,
): void {
  const access = isPublic ? ("public" as const) : ({ scope: "read" } as const);
  app.get("/metrics", { config: { access }, schema }, async ({ caller }, reply) => {
    // They name every zone and channel, as the status does for keys of every zone only.
    if (!isPublic && caller?.zoneIds !== null)
      throw new Refusal(403, {
        detail: "This key is for some zones only, but the metrics cover all zones. Use a key for every zone.",
      });
    let backlog: Backlog | null = null;
    const reading = readBacklog().then(
      (read) => {
        backlog = read;
      },
      (thrown: unknown) => onError("backlog", toError(thrown)),
    );
    await within(reading, timeoutMs);
    metrics.setBacklog(backlog);
    return reply.header("content-type", metrics.contentType).send(await metrics.render());
  });
}
