import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { makeKey, startArchive } from "../faces/http/start-archive.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(path.join(ROOT, file), "utf8");

/** Every source file of the service itself, from the root. */
const SOURCES = ["src", "jobs", "db"].flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`),
);

async function start() {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { url } = await startArchive(database.url, {}, {}, { zoneIds: [101] });
  const { key } = await makeKey(database, "reader", { zoneIds: [101] });
  return { database, url, key };
}

test("S11: no answer lets another site's script read it or makes a browser remember anything", async () => {
  const { url, key } = await start();
  const origin = { origin: "https://evil.example.test", "access-control-request-method": "GET" };
  for (const [method, path] of [
    ["GET", "/docs"],
    ["GET", "/api/v1/zones"],
    ["GET", "/nowhere"],
    ["OPTIONS", "/api/v1/zones"],
  ] as const) {
    const { headers } = await fetch(url + path, { method, headers: { ...origin, AccessKey: key } });
    expect([...headers.keys()].filter((name) => /^access-control|^set-cookie/.test(name))).toEqual([]);
  }
});

test("S16: on the platform's paths a zone of others looks like one that is not there, and is not entered", async () => {
  const { database, url, key } = await start();
  const body = JSON.stringify({ from: Date.now() - 1_000, to: Date.now() });
  const headers = { AccessKey: key, "content-type": "application/json" };
  const search = (zone: number) =>
    fetch(`${url}/shield/event-logs/${zone}/search`, { method: "POST", headers, body });
  const [foreign, missing] = [await search(102), await search(999)];
  expect(foreign.status).toBe(missing.status);
  expect(await foreign.text()).toBe(await missing.text());
  const { rows } = await database.pool.query("select from audit_entries where action like '%denied'");
  expect(rows).toEqual([]);
});

test("S18: of two members with one name the last counts", async () => {
  const { url, key } = await start();
  const headers = { AccessKey: key, "content-type": "application/json" };
  const ask = (first: string, last: string) => {
    const body = `{"from":${first},"to":${Date.now()},"from":${last}}`;
    return fetch(`${url}/shield/event-logs/101/search`, { method: "POST", headers, body });
  };
  const minuteAgo = String(Date.now() - 60_000);
  expect((await ask('"x"', minuteAgo)).status).toBe(200);
  expect((await ask(minuteAgo, '"x"')).status).toBe(400);
});

test("S22: every direct dependency has its reason in README.md or CONTRIBUTING.md, and every package its hash in the lock file", () => {
  const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<
    "dependencies" | "devDependencies",
    Record<string, string>
  >;
  const reasons = `${read("README.md")}\n${read("CONTRIBUTING.md")}`
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split("|")[1] ?? "")
    .flatMap((names) => names.replace("(development)", "").split(","))
    .map((name) => name.trim());
  // Types belong to the package that they describe, and oxlint to its own helper.
  const named = [...Object.keys(dependencies), ...Object.keys(devDependencies)].filter(
    (name) => !name.startsWith("@types/") && name !== "oxlint-tsgolint",
  );
  expect(
    named.filter((name) => !reasons.some((reason) => name === reason || name.endsWith(`/${reason}`))),
  ).toEqual([]);

  const { packages } = JSON.parse(read("package-lock.json")) as {
    packages: Record<string, { version?: string; integrity?: string }>;
  };
  const locked = Object.entries(packages).filter(([name]) => name !== "");
  expect(locked.length).toBeGreaterThan(100);
  const loose = locked.filter(
    ([, { version, integrity = "" }]) =>
      !/^\d+\.\d+\.\d+/.test(version ?? "") || !integrity.startsWith("sha512-"),
  );
  expect(loose.map(([name]) => name)).toEqual([]);
});

test("S24: nothing else in the program opens connections than what is known to", () => {
  // Imports of what can connect (types aside), and the globals that do.
  const connects =
    /(?:^(?:import (?!type).*|}) from |\bimport\()"(?:undici|pg|ioredis|bullmq|nodemailer|node:(?:net|tls|http|https|http2|dgram|dns))"|(?<![.\w])fetch\(|new (?:WebSocket|EventSource)\(/m;
  const known = [
    // To Postgres.
    "db/client.ts",
    // To destinations, each host resolved and checked first.
    "src/delivery/receivers/sinks/kafka.ts",
    "src/delivery/receivers/sinks/syslog.ts",
    // Only listens: whether the port of HTTP is free.
    "src/app/open-http.ts",
    // To this service itself, the console's from the browser.
    "src/app/check-health.ts",
    "src/faces/console/api/client.ts",
    // To the service that a person names, with a key.
    "src/faces/cli/operations/ask-remotely.ts",
    // To the channels, to destinations of events and to the issuer, guarded.
    "src/delivery/receivers/channels/email/email.ts",
    "src/delivery/receivers/endpoint.ts",
    // To the platform.
    "src/faces/cli/doctor/gather-platform.ts",
    "src/platform/transport/transport.ts",
    // The embedded Postgres, and the emulator, which only listens.
    "src/store/embedded/postgres.ts",
    // What kind of address a network is.
    "src/emulator/query/request.ts",
    "src/emulator/server.ts",
    // Texts of attacks.
    "src/emulator/traffic/payloads.ts",
    // Only listens, and has the kinds of addresses of those that connect.
    "src/faces/http/limits/limit-connections.ts",
    // Names of status codes.
    "src/faces/http/errors/problem.ts",
    "src/faces/http/routes/edge/platform.ts",
    // The queues, in Redis or Postgres.
    "src/store/queue/backend.ts",
    "src/store/queue/redis.ts",
    "src/store/queue/job-queue.ts",
    // To the archive's bucket.
    "src/store/bucket/bucket.ts",
    // What kind of address a network is.
    "src/archive/rules/query/plan-search.ts",
    "src/archive/rules/query/custom-conditions.ts",
  ];
  expect(new Set(SOURCES.filter((file) => connects.test(read(file))))).toEqual(new Set(known));
});
