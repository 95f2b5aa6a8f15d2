import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { measureIngest } from "#app/measure.ts";
import type { Backlog } from "#faces/http/backlog.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import type { Zones } from "#model/zones.ts";
import type { Authenticate, Caller } from "#operations/caller.ts";
import { EMPTY_BACKLOG, startHttp } from "./start-http.ts";

const READER = { keyId: "k", name: "k", roles: [], zoneIds: null, masked: false } satisfies Partial<Caller>;

const FRESH = {
  ingest_lag_seconds: null,
  hours_to_loss: null,
  gap_hours: 0,
  platform_suspect: false,
  hours_reopened: 0,
  hours_unjudged: 0,
  unjudged_age_seconds: null,
};

async function scrape(url: string): Promise<string> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  return response.text();
}

test("counters are shown with their labels, beside the process's own numbers", async () => {
  const { url, metrics } = await startHttp();
  metrics.pages.inc({ route: "list", zone: "101", result: "new" });
  metrics.events.inc({ zone: "101", route: "search", result: "quarantined" }, 3);
  metrics.edgeRequests.inc({ operation: "list-event-logs", outcome: "ok" });
  metrics.notifications.inc({ channel: "slack", outcome: "delivered" });
  metrics.enqueueFailures.inc();
  metrics.jobEnded({ job: "poll-events", outcome: "done", durationMs: 1_500, endedAt: 1_700_000_000_000 });
  metrics.jobEnded({ job: "walk-days", outcome: "retry", durationMs: 10, endedAt: 1_700_000_000_000 });
  const text = await scrape(url);

  for (const line of [
    'longwatch_pages_total{route="list",zone="101",result="new"} 1',
    'longwatch_events_total{zone="101",route="search",result="quarantined"} 3',
    'longwatch_edge_requests_total{operation="list-event-logs",outcome="ok"} 1',
    'longwatch_notifications_total{channel="slack",outcome="delivered"} 1',
    "longwatch_queue_enqueue_failures_total 1",
    'longwatch_job_runs_total{job="poll-events",outcome="done"} 1',
    'longwatch_job_duration_seconds_sum{job="poll-events"} 1.5',
    'longwatch_job_last_success_timestamp_seconds{job="poll-events"} 1700000000',
  ])
    expect(text).toContain(`${line}\n`);
  expect(text).toContain("process_resident_memory_bytes ");
  expect(text).not.toContain('timestamp_seconds{job="walk-days"}');
});

test("the service's backlog is read at every scrape", async () => {
  const [service] = EMPTY_BACKLOG.service;
  let spikes = 1;
  const { url } = await startHttp({
    readBacklog: async () => ({
      ...EMPTY_BACKLOG,
      service: [
        {
          ...service!,
          spikes_open: spikes++,
          channels_down: 1,
          pseudonym_key_missing: true,
          notifications_pending: 7,
        },
      ],
      accounts: [
        { edge_budget_tokens: 2.5, edge_paused: true, edge_key_refused: false },
        { account: "shop", edge_budget_tokens: 4, edge_paused: false, edge_key_refused: true },
      ],
      destinations: [
        {
          destination: "siem",
          forward_failing: true,
          forward_hours_open: 4,
          forward_hours_differing: 1,
          forward_oldest_open_seconds: 7_200,
          forward_events_refused: 3,
        },
        {
          destination: "files",
          forward_failing: false,
          forward_hours_open: 0,
          forward_hours_differing: 0,
          forward_oldest_open_seconds: 0,
          forward_events_refused: 0,
        },
      ],
      alerts: [
        { state: "firing", kind: "spike", alerts: 3 },
        { state: "acknowledged", kind: "self", alerts: 1 },
      ],
      conditions: [
        { condition: "unpolled", conditions: 2 },
        { condition: "disk", conditions: 0 },
      ],
      channels: [
        {
          channel: "slack",
          channel_circuit_open: true,
          channel_notifications_pending: 4,
          channel_notifications_dead: 2,
        },
        {
          channel: "terminal",
          channel_circuit_open: false,
          channel_notifications_pending: 0,
          channel_notifications_dead: 0,
        },
      ],
      zones: [
        {
          zoneId: 101,
          ingest_lag_seconds: 12.5,
          hours_to_loss: 71,
          gap_hours: 5,
          platform_suspect: true,
          hours_reopened: 3,
          hours_unjudged: 2,
          unjudged_age_seconds: 9_000,
        },
        { ...FRESH, zoneId: 102 },
      ],
    }),
  });
  await scrape(url);
  const text = await scrape(url);

  expect(text).toContain("longwatch_spikes_open 2\n");
  expect(text).toContain("longwatch_notifications_pending 7\n");
  expect(text).toContain("longwatch_edge_budget_tokens 2.5\n");
  expect(text).toContain("longwatch_edge_paused 1\n");
  expect(text).toContain('longwatch_edge_key_refused{account="shop"} 1\n');
  expect(text).toContain('longwatch_channel_circuit_open{channel="slack"} 1\n');
  expect(text).toContain('longwatch_channel_circuit_open{channel="terminal"} 0\n');
  expect(text).toContain('longwatch_channel_notifications_pending{channel="slack"} 4\n');
  expect(text).toContain('longwatch_channel_notifications_dead{channel="slack"} 2\n');
  expect(text).toContain('longwatch_ingest_lag_seconds{zone="101"} 12.5\n');
  expect(text).toContain('longwatch_hours_to_loss{zone="101"} 71\n');
  expect(text).toContain('longwatch_platform_suspect{zone="101"} 1\n');
  expect(text).toContain('longwatch_platform_suspect{zone="102"} 0\n');
  expect(text).toContain('longwatch_hours_reopened{zone="101"} 3\n');
  expect(text).toContain('longwatch_hours_unjudged{zone="101"} 2\n');
  expect(text).toContain('longwatch_unjudged_age_seconds{zone="101"} 9000\n');
  expect(text.match(/^.*zone="102".*$/gm)).toEqual([
    'longwatch_gap_hours{zone="102"} 0',
    'longwatch_platform_suspect{zone="102"} 0',
    'longwatch_hours_reopened{zone="102"} 0',
    'longwatch_hours_unjudged{zone="102"} 0',
  ]);
  expect(text).toContain('longwatch_gap_hours{zone="101"} 5\n');
  expect(text).toContain('longwatch_alerts{state="firing",kind="spike"} 3\n');
  expect(text).toContain('longwatch_alerts{state="acknowledged",kind="self"} 1\n');
  expect(text).toContain("longwatch_channels_down 1\n");
  expect(text).toContain('longwatch_conditions{condition="unpolled"} 2\n');
  expect(text).toContain('longwatch_conditions{condition="disk"} 0\n');
  expect(text.match(/^longwatch_forward_.*$/gm)).toEqual([
    'longwatch_forward_failing{destination="siem"} 1',
    'longwatch_forward_failing{destination="files"} 0',
    'longwatch_forward_hours_open{destination="siem"} 4',
    'longwatch_forward_hours_open{destination="files"} 0',
    'longwatch_forward_hours_differing{destination="siem"} 1',
    'longwatch_forward_hours_differing{destination="files"} 0',
    'longwatch_forward_oldest_open_seconds{destination="siem"} 7200',
    'longwatch_forward_oldest_open_seconds{destination="files"} 0',
    'longwatch_forward_events_refused{destination="siem"} 3',
    'longwatch_forward_events_refused{destination="files"} 0',
  ]);
  expect(text).toContain("longwatch_pseudonym_key_missing 1\n");
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
            ...EMPTY_BACKLOG,
            alerts: [{ state: "firing", kind: "spike", alerts: 3 }],
            channels: [
              {
                channel: "slack",
                channel_circuit_open: true,
                channel_notifications_pending: 4,
                channel_notifications_dead: 2,
              },
            ],
            zones: [{ ...FRESH, zoneId: 101, ingest_lag_seconds: 1 }],
          },
  });
  expect(await scrape(url)).toContain("longwatch_backlog_readable 1\n");
  const text = await scrape(url);

  expect(text).toContain("longwatch_backlog_readable 0\n");
  expect(text).toContain("longwatch_spikes_open Nan\n");
  expect(text).not.toContain('zone="101"');
  expect(text).not.toContain('channel="slack"');
  expect(text).not.toContain('kind="spike"');
  expect(text).toContain("longwatch_pseudonym_key_missing Nan\n");
  expect(text).toContain("process_cpu_seconds_total ");
});

test("the version and what became of every reload are shown", async () => {
  const { url, metrics } = await startHttp();
  const text = await scrape(url);
  expect(text).toMatch(/^longwatch_build_info\{version="\d+\.\d+\.\d+[^"]*",node="\d+\.\d+\.\d+"\} 1$/m);
  expect(text).toContain('longwatch_config_reloads_total{result="refused"} 0\n');
  expect(text).toContain("longwatch_config_last_reload_successful 1\n");
  metrics.configReloaded("refused");
  expect(await scrape(url)).toContain("longwatch_config_last_reload_successful 0\n");
  expect(await scrape(url)).toContain('longwatch_config_reloads_total{result="refused"} 1\n');
  metrics.configReloaded("taken");
  expect(await scrape(url)).toContain("longwatch_config_last_reload_successful 1\n");
  expect(await scrape(url)).toMatch(/^longwatch_config_last_reload_success_timestamp_seconds 1\d{9}/m);
});

test("own routes take a key as AccessKey or as a bearer token, the platform's routes as AccessKey alone", async () => {
  const authenticate: Authenticate = async (key) =>
    key === "lw_good" ? { ...READER, scopes: new Set(["read"] as const) } : null;
  const { url } = await startHttp({ areMetricsPublic: false, authenticate }, (app) => {
    app.get("/other", { config: { access: { scope: "read" } } }, async () => "other");
    app.get(
      "/platform",
      { config: { access: { scope: "read" }, errorForm: "bare" } },
      async () => "platform",
    );
  });
  const ask = async (path: string, headers: Record<string, string>) =>
    (await fetch(`${url}${path}`, { headers })).status;
  expect(await ask("/metrics", { AccessKey: "lw_good" })).toBe(200);
  expect(await ask("/metrics", { Authorization: "Bearer lw_good" })).toBe(200);
  expect(await ask("/metrics", { Authorization: "bearer  lw_good " })).toBe(200);
  expect(await ask("/metrics", { Authorization: "Bearer lw_bad" })).toBe(401);
  expect(await ask("/metrics", { Authorization: "Basic lw_good" })).toBe(401);
  expect(await ask("/metrics", { Authorization: "Bearer" })).toBe(401);
  // The platform's own header comes first: a wrong key is not mended by a right token.
  expect(await ask("/metrics", { AccessKey: "lw_bad", Authorization: "Bearer lw_good" })).toBe(401);
  expect(await ask("/other", { AccessKey: "lw_good" })).toBe(200);
  expect(await ask("/other", { Authorization: "Bearer lw_good" })).toBe(200);
  expect(await ask("/platform", { AccessKey: "lw_good" })).toBe(200);
  expect(await ask("/platform", { Authorization: "Bearer lw_good" })).toBe(401);
});

test("docs/deploy.md and docs/scaling.md name no metric that there is none of", async () => {
  const docs = path.join(import.meta.dirname, "..", "..", "..", "docs");
  const pages = ["deploy.md", "scaling.md"].map((name) => readFileSync(path.join(docs, name), "utf8"));
  const named = new Set(pages.join("\n").match(/\blongwatch_[a-z_]+/g));
  const shown = await createMetrics().render();
  expect(named.size).toBeGreaterThan(3);
  for (const name of named) expect(shown).toContain(`# TYPE ${name} `);
});

test("a zone's name is a label of its metrics, its labels are those of longwatch_zone_info, and both may change", async () => {
  let zones: Zones = {
    101: { name: "shop", labels: { team: "edge" } },
    102: { name: null, labels: { tier: "2" } },
  };
  const metrics = createMetrics(() => zones);
  const stored = {
    route: "list",
    entries: 1,
    inserted: 1,
    filled: 0,
    quarantined: 0,
    bytes: 1,
    commitMs: 30,
  } as const;
  measureIngest(metrics).pageStored({ ...stored, zoneId: 101 });
  measureIngest(metrics).pageStored({ ...stored, zoneId: 102 });
  const backlog: Backlog = {
    ...EMPTY_BACKLOG,
    archives: [
      {
        zoneId: 101,
        archive_days: 3,
        archive_oldest_day_timestamp_seconds: Date.parse("2026-11-18") / 1_000,
        archive_checked_timestamp_seconds: 5,
        archive_damaged_files: 1,
      },
    ],
    archiveFiles: [{ zoneId: 101, kind: "records", archive_bytes: 110 }],
    zones: [{ ...FRESH, zoneId: 101, ingest_lag_seconds: 1, hours_to_loss: 2, gap_hours: 3 }],
  };
  metrics.setBacklog(backlog);
  const text = await metrics.render();
  for (const line of [
    'longwatch_pages_total{route="list",zone="101",zone_name="shop",result="changed"} 1',
    'longwatch_events_total{zone="102",route="list",result="new"} 1',
    'longwatch_page_commit_duration_seconds_bucket{le="0.05",route="list"} 2',
    'longwatch_page_commit_duration_seconds_bucket{le="0.025",route="list"} 0',
    'longwatch_ingest_lag_seconds{zone="101",zone_name="shop"} 1',
    'longwatch_hours_to_loss{zone="101",zone_name="shop"} 2',
    'longwatch_gap_hours{zone="101",zone_name="shop"} 3',
    'longwatch_archive_days{zone="101",zone_name="shop"} 3',
    'longwatch_archive_bytes{zone="101",zone_name="shop",kind="records"} 110',
    `longwatch_archive_oldest_day_timestamp_seconds{zone="101",zone_name="shop"} ${Date.parse("2026-11-18") / 1_000}`,
    'longwatch_archive_checked_timestamp_seconds{zone="101",zone_name="shop"} 5',
    'longwatch_archive_damaged_files{zone="101",zone_name="shop"} 1',
    'longwatch_zone_info{team="edge",zone="101",zone_name="shop"} 1',
    'longwatch_zone_info{tier="2",zone="102"} 1',
  ])
    expect(text).toContain(`${line}\n`);
  zones = { 101: { name: "store", labels: { owner: "x" } } };
  metrics.setBacklog(backlog);
  const later = await metrics.render();
  expect(later).toContain('longwatch_zone_info{owner="x",zone="101",zone_name="store"} 1\n');
  expect(later.match(/^longwatch_zone_info\{.*$/gm)).toHaveLength(1);
  expect(later.match(/^longwatch_gap_hours\{.*$/gm)).toEqual([
    'longwatch_gap_hours{zone="101",zone_name="store"} 3',
  ]);
});

test("two services in one process count apart", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  one.enqueueFailures.inc();

  expect(await one.render()).toContain("queue_enqueue_failures_total 1");
  expect(await other.render()).toContain("queue_enqueue_failures_total 0");
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
