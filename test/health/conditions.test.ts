import { pino } from "pino";
import { beforeEach, expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { viewService } from "#app/view-service.ts";
import { parseConfig } from "#config/config.ts";
import { recordRefusal } from "#db/proof/platform-health.ts";
import { platformHealth } from "#db/schema/coverage.ts";
import { doctorCommand } from "#faces/cli/doctor/doctor.ts";
import { statusCommand } from "#faces/cli/status/status.ts";
import { readBacklog } from "#faces/http/backlog.ts";
import { listReadyChecks } from "#health/service/attention.ts";
import { createReportServiceJob } from "#jobs/alerts/report-service.ts";
import { CONDITIONS } from "#jobs/health/conditions/service.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { openAlertWorld } from "../alerts/alert-world.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { ask } from "../faces/http/api/api-world.ts";
import { makeKey, startArchive } from "../faces/http/start-archive.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const { database, world } = await openAlertWorld();

beforeEach(async () => {
  await database.db.delete(platformHealth);
});

test("alert, status, overview, doctor, metrics and /readyz name one failure, the first five in one sentence", async () => {
  const now = Date.now();
  await recordRefusal(database.db, 101, { atMs: now - 3 * MINUTE_MS, code: "EDGE_UNAUTHORIZED" });
  const job = createReportServiceJob({
    database,
    clock: () => now,
    log: pino({ level: "silent" }),
    zoneIds: [101],
    pollEveryMs: 30_000,
    routing: () => routeToAll(["chat"]),
    afterAlerts: async () => undefined,
  });
  await job.run({} as never, new AbortController().signal);
  const text = "The platform refuses the access key (EDGE_UNAUTHORIZED). No events of zone 101 are copied";
  expect((await world.messages()).map(({ message }) => message.headline)).toEqual([text]);

  const environment = { DATABASE_URL: database.url, LONGWATCH_DATA_DIR: makeTemporaryFolder("conditions") };
  const status = await runStoreCommand(statusCommand, environment, [], { now });
  expect(status.out).toContain(`\n  ${text}\n`);
  const examine: Parameters<typeof runStoreCommand>[0] = (_, io) =>
    doctorCommand(() => ({ config: parseConfig(environment), configFile: null, env: environment }), io);
  const doctor = JSON.parse((await runStoreCommand(examine, {}, ["--json"], { now })).out) as {
    items: object[];
  };
  expect(doctor.items).toContainEqual(expect.objectContaining({ level: "problem", text: `${text}.` }));

  const { key } = await makeKey(database, "reader");
  const asked = { db: database.db, now, service: viewService(parseConfig(environment)) };
  const openKey = () => Promise.reject(new Error("no key"));
  const { url } = await startArchive(
    database.url,
    {
      areMetricsPublic: true,
      checks: listReadyChecks(() => asked, [101]),
      readBacklog: () => readBacklog({ ...asked, zoneIds: [101], openKey }),
    },
    { clock: () => now },
  );
  const overview = await ask<{ attention: object[] }>(url, "/api/v1/overview", key);
  expect(overview.attention).toContainEqual({ kind: "credentials", zoneId: null, text });
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toContain('longwatch_conditions{condition="credentials"} 1\n');
  expect(metrics).toContain('longwatch_conditions{condition="archive"} 0\n');
  const ready = await fetch(`${url}/readyz`);
  expect(ready.status).toBe(200);
  const detail = "longwatch status says more";
  expect(await ready.json()).toEqual({
    state: "degraded",
    checks: { "pseudonym-key": { state: "ok" }, credentials: { state: "degraded", detail } },
  });
});

test("no two conditions have the same name or the same fingerprint", () => {
  const names = CONDITIONS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const fingerprints = CONDITIONS.map(({ name, fingerprint = name }) => fingerprint);
  expect(new Set(fingerprints).size).toBe(names.length);
});
