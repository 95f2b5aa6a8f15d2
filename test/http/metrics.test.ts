import { expect, test } from "vitest";
import { createMetrics } from "../../src/http/metrics.ts";
import { startHttp } from "./start-http.ts";

async function scrape(url: string): Promise<string> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  return response.text();
}

test("what was counted is shown with its labels, with the process's own numbers", async () => {
  const { url, metrics } = await startHttp();
  metrics.pages.inc({ route: "list", zone: "101", result: "new" });
  metrics.events.inc({ zone: "101", route: "search", result: "quarantined" }, 3);
  metrics.edgeRequests.inc({ operation: "list-event-logs", outcome: "ok" });
  metrics.notifications.inc({ channel: "slack", outcome: "delivered" });
  metrics.queueRingFailures.inc();
  metrics.jobEnded({ job: "poll-events", outcome: "done", durationMs: 1_500, endedAt: 1_700_000_000_000 });
  metrics.jobEnded({ job: "walk-days", outcome: "retry", durationMs: 10, endedAt: 1_700_000_000_000 });
  const text = await scrape(url);

  for (const line of [
    'longwatch_pages_total{route="list",zone="101",result="new"} 1',
    'longwatch_events_total{zone="101",route="search",result="quarantined"} 3',
    'longwatch_edge_requests_total{operation="list-event-logs",outcome="ok"} 1',
    'longwatch_notifications_total{channel="slack",outcome="delivered"} 1',
    "longwatch_queue_ring_failures_total 1",
    'longwatch_job_runs_total{job="poll-events",outcome="done"} 1',
    'longwatch_job_duration_seconds_sum{job="poll-events"} 1.5',
    'longwatch_job_last_success_timestamp_seconds{job="poll-events"} 1700000000',
  ])
    expect(text).toContain(`${line}\n`);
  expect(text).toContain("process_resident_memory_bytes ");
  expect(text).not.toContain('timestamp_seconds{job="walk-days"}');
});

test("the service's backlog is read at every scrape", async () => {
  let spikesOpen = 1;
  const { url } = await startHttp({
    readBacklog: async () => ({
      spikesOpen: spikesOpen++,
      notificationsPending: 7,
      requestBudget: { tokens: 2.5, isPaused: true },
      channels: [
        { channel: "slack", isOpen: true, waiting: 4, dead: 2 },
        { channel: "terminal", isOpen: false, waiting: 0, dead: 0 },
      ],
      zones: [
        { zoneId: 101, ingestLagSeconds: 12.5, hoursToLoss: 71, isSuspect: true, hoursReopened: 3 },
        { zoneId: 102, ingestLagSeconds: null, hoursToLoss: null, isSuspect: false, hoursReopened: 0 },
      ],
    }),
  });
  await scrape(url);
  const text = await scrape(url);

  expect(text).toContain("longwatch_spikes_open 2\n");
  expect(text).toContain("longwatch_notifications_pending 7\n");
  expect(text).toContain("longwatch_edge_budget_tokens 2.5\n");
  expect(text).toContain("longwatch_edge_paused 1\n");
  expect(text).toContain('longwatch_channel_circuit_open{channel="slack"} 1\n');
  expect(text).toContain('longwatch_channel_circuit_open{channel="terminal"} 0\n');
  expect(text).toContain('longwatch_channel_notifications_pending{channel="slack"} 4\n');
  expect(text).toContain('longwatch_channel_notifications_dead{channel="slack"} 2\n');
  expect(text).toContain('longwatch_ingest_lag_seconds{zone="101"} 12.5\n');
  expect(text).toContain('longwatch_hours_to_loss{zone="101"} 71\n');
  expect(text).toContain('longwatch_platform_suspect{zone="101"} 1\n');
  expect(text).toContain('longwatch_platform_suspect{zone="102"} 0\n');
  expect(text).toContain('longwatch_hours_reopened{zone="101"} 3\n');
  expect(text).not.toContain('zone="102"');
});

test.each([
  ["cannot be read", () => Promise.reject(new Error("no database"))],
  ["does not answer in time", () => new Promise<never>(() => {})],
])("a backlog that %s leaves no old numbers behind, and the rest is shown", async (_name, fail) => {
  let reads = 0;
  const { url } = await startHttp({
    checkTimeoutMs: 20,
    readBacklog: async () =>
      reads++ > 0
        ? fail()
        : {
            spikesOpen: 3,
            notificationsPending: 0,
            requestBudget: null,
            channels: [{ channel: "slack", isOpen: true, waiting: 4, dead: 2 }],
            zones: [{ zoneId: 101, ingestLagSeconds: 1, hoursToLoss: 1, isSuspect: false, hoursReopened: 0 }],
          },
  });
  expect(await scrape(url)).toContain("longwatch_backlog_readable 1\n");
  const text = await scrape(url);

  expect(text).toContain("longwatch_backlog_readable 0\n");
  expect(text).toContain("longwatch_spikes_open Nan\n");
  expect(text).not.toContain('zone="101"');
  expect(text).not.toContain('channel="slack"');
  expect(text).toContain("process_cpu_seconds_total ");
});

test("two services in one process count apart", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  one.queueRingFailures.inc();

  expect(await one.render()).toContain("queue_ring_failures_total 1");
  expect(await other.render()).toContain("queue_ring_failures_total 0");
});

test("answers are counted by route and status, addresses that nobody serves under one name", async () => {
  const { url } = await startHttp();
  await fetch(`${url}/livez`);
  await fetch(`${url}/somebody/made/this/up`);
  await fetch(`${url}/and/this`);
  const text = await scrape(url);

  expect(text).toContain('longwatch_http_requests_total{route="GET /livez",status="200"} 1\n');
  expect(text).toContain('longwatch_http_requests_total{route="none",status="404"} 2\n');
  expect(text).toContain('longwatch_http_request_duration_seconds_count{route="GET /livez"} 1\n');
});
