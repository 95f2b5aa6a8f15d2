import type { FastifyInstance, FastifyRequest } from "fastify";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createDatabase } from "#db/client.ts";
import { listLiveKeyHashes } from "#db/people/api-keys.ts";
import { networkOf } from "#faces/http/limits/origin.ts";
import { createRefuseCostly } from "#faces/http/limits/refuse.ts";
import { createRateLimiter } from "#lib/rate-limiter.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { clearAudit } from "../cli/clear-audit.ts";
import { call, makeKey, startArchive } from "./start-archive.ts";
import { LIMITS } from "./start-http.ts";

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.pool.query("truncate api_keys");
  await clearAudit(database);
});

const wrongKey = (n: number) => `lw_00000000_${String(n).padStart(32, "0")}`;

async function statuses(count: number, ask: (n: number) => Promise<Response>): Promise<number[]> {
  const found: number[] = [];
  for (let n = 0; n < count; n += 1) found.push((await ask(n)).status);
  return found;
}

async function audit(action: string) {
  const { rows } = await database.pool.query<{
    actor: string;
    subject: string;
    details: Record<string, unknown>;
  }>("select actor, subject, details from audit_entries where action = $1 order by id", [action]);
  return rows;
}

test("S4: a flood of wrong keys is soon not looked at any more, and waits longer each time", async () => {
  let now = 0;
  const { url } = await startArchive(database.url, { clock: () => now });
  const ask = (n: number) => call(url, "/metrics", wrongKey(n));

  expect(await statuses(30, ask)).toEqual([...Array(10).fill(401), ...Array(20).fill(429)]);
  const refused = await ask(0);
  expect(refused.headers.get("retry-after")).toBe("1");
  now = 1_000;
  expect(await statuses(2, ask)).toEqual([401, 429]);
  expect((await ask(0)).headers.get("retry-after")).toBe("2");
  const waits = [];
  for (let failure = 0; failure < 11; failure += 1) {
    const waitSeconds = Number((await ask(0)).headers.get("retry-after"));
    waits.push(waitSeconds);
    now += waitSeconds * 1_000;
    expect((await ask(failure)).status).toBe(401);
  }
  expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
});

test("S4: wrong keys from the same address do not lock out a key that was good before", async () => {
  const { url } = await startArchive(database.url, { clock: () => 0 });
  const { key } = await makeKey(database, "reader");
  expect((await call(url, "/metrics", key)).status).toBe(200);
  await statuses(30, (n) => call(url, "/metrics", wrongKey(n)));

  expect((await call(url, "/metrics", key)).status).toBe(200);
  await database.pool.query("update api_keys set revoked_at = now()");
  expect(await statuses(2, () => call(url, "/metrics", key))).toEqual([401, 429]);
});

test("S4: wrong keys from the same address lock no key out that was good before a restart", async () => {
  const [old, revoked] = [await makeKey(database, "reader"), await makeKey(database, "reader")];
  await database.pool.query("update api_keys set revoked_at = now() where key_id = $1", [revoked.keyId]);
  const knownKeys = await listLiveKeyHashes(database.db, 10);
  const { url } = await startArchive(database.url, { clock: () => 0, knownKeys });
  await statuses(11, (n) => call(url, "/metrics", wrongKey(n)));

  expect((await call(url, "/metrics", old.key)).status).toBe(200);
  expect((await call(url, "/metrics", revoked.key)).status).toBe(429);
});

test("S16: refusals are written down, but a flood of them fills no table: what is left out is counted", async () => {
  let now = 0;
  const { url } = await startArchive(database.url, { clock: () => now });
  const { key, keyId } = await makeKey(database, "reader");
  await statuses(15, () => call(url, "/api/v1/keys?secret=canary", key));
  await vi.waitFor(async () => expect(await audit("scope.denied")).toHaveLength(10));
  now = 60_000;
  await call(url, "/api/v1/keys", key);
  await vi.waitFor(async () => expect(await audit("scope.denied")).toHaveLength(11));

  const entries = await audit("scope.denied");
  expect(entries[0]).toEqual({
    actor: `key ${keyId} (reader)`,
    subject: "GET /api/v1/keys",
    details: { network: "127.0.0.1", requestId: expect.any(String) },
  });
  expect(entries.at(-1)?.details).toMatchObject({ notWritten: 5 });
  expect(JSON.stringify(entries)).not.toContain("canary");
});

test("S16: a wrong key is written down without the key", async () => {
  const { url } = await startArchive(database.url);
  await call(url, "/metrics", wrongKey(7));
  await vi.waitFor(async () => expect(await audit("key.refused")).toHaveLength(1));

  const [entry] = await audit("key.refused");
  expect(entry).toMatchObject({ actor: "nobody", subject: "GET /metrics" });
  expect(JSON.stringify(entry)).not.toContain("0000000");
});

test("S4: each key has its requests a minute, and every answer states how many are left", async () => {
  let now = 0;
  const limits = { ...LIMITS, perKeyAndMinute: 3 };
  const { url } = await startArchive(database.url, { limits, clock: () => now });
  const [one, other] = [await makeKey(database, "reader"), await makeKey(database, "reader")];
  const first = await call(url, "/metrics", one.key);
  await statuses(2, () => call(url, "/metrics", one.key));
  const refused = await call(url, "/metrics", one.key);

  expect(first.headers.get("ratelimit-policy")).toBe('"key";q=3;w=60');
  expect(first.headers.get("ratelimit")).toBe('"key";r=2;t=20');
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("20");
  expect(refused.headers.get("ratelimit")).toBe('"key";r=0;t=60');
  expect(await refused.json()).toMatchObject({ type: "urn:longwatch:problem:too-many-requests" });
  expect((await call(url, "/metrics", other.key)).status).toBe(200);
  now = 20_000;
  expect(await statuses(2, () => call(url, "/metrics", one.key))).toEqual([200, 429]);
});

test("S4: an address has its requests a minute, with a key or without; probes have their own", async () => {
  const limits = { ...LIMITS, perAddressAndMinute: 3 };
  const { app, url } = await startArchive(database.url, { limits, clock: () => 0 });
  const { key } = await makeKey(database, "reader");

  expect(await statuses(3, () => call(url, "/nothing"))).toEqual([404, 404, 404]);
  expect((await call(url, "/metrics", key)).status).toBe(429);
  expect(await statuses(5, () => call(url, "/livez"))).toEqual(Array(5).fill(200));
  // Without a socket, which costs most of a request.
  for (let n = 0; n < 1_195; n++) expect((await app.inject("/livez")).statusCode).toBe(200);
  expect(await statuses(2, () => call(url, "/livez"))).toEqual([429, 429]);
});

/** Returns the client address that the server derives from a request with this header. */
async function seenAddress(trustedProxies: readonly string[], forwarded: string): Promise<string> {
  const { url } = await startArchive(database.url, {
    trustedProxies,
    routes: [(app) => void app.get("/me", { config: { access: "public" } }, (asked) => networkOf(asked))],
  });
  return (await call(url, "/me", undefined, { headers: { "x-forwarded-for": forwarded } })).text();
}

test("S5: X-Forwarded-For of somebody who is no trusted proxy is not believed", async () => {
  expect(await seenAddress([], "203.0.113.7")).toBe("127.0.0.1");
  expect(await seenAddress(["10.0.0.0/8"], "203.0.113.7")).toBe("127.0.0.1");
});

test("S5: of a trusted proxy's X-Forwarded-For the last address that is no proxy counts", async () => {
  const proxies = ["127.0.0.1", "10.0.0.0/8"];

  expect(await seenAddress(proxies, "198.51.100.1, 203.0.113.7, 10.1.2.3")).toBe("203.0.113.7");
  expect(await seenAddress(proxies, "2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2::/64");
  expect(await seenAddress(proxies, "::ffff:203.0.113.7")).toBe("203.0.113.7");
  expect(await seenAddress(proxies, "<script>")).toBe("127.0.0.1");
});

test("S5: a spoofed address does not escape the limit", async () => {
  const { url } = await startArchive(database.url, {
    limits: { ...LIMITS, perAddressAndMinute: 2 },
    clock: () => 0,
  });
  const ask = (n: number) =>
    call(url, "/nothing", undefined, { headers: { "x-forwarded-for": `203.0.113.${n}` } });

  expect(await statuses(3, ask)).toEqual([404, 404, 429]);
});

test("S4: unread exports of two keys keep no other key from exporting", async () => {
  const gate = Promise.withResolvers<void>();
  let unread = 0;
  const answer = async (asked: FastifyRequest) => {
    if ((asked.query as { wait?: string }).wait === undefined) return "done";
    unread += 1;
    await gate.promise;
    return "done";
  };
  const config = { access: { scope: "read" }, heavy: "export" } as const;
  const routes = [(app: FastifyInstance) => void app.get("/slow", { config }, answer)];
  const { url } = await startArchive(database.url, { routes });
  // Before the server closes, which waits for its answers: what is added last runs first.
  onTestFinished(() => gate.resolve());
  const keys = [await makeKey(database, "reader"), await makeKey(database, "reader")];
  for (const { key } of keys)
    for (let n = 0; n < 2; n++) void call(url, "/slow?wait", key).catch(() => undefined);
  await vi.waitFor(() => expect(unread).toBe(4));

  expect((await call(url, "/slow", (await makeKey(database, "reader")).key)).status).toBe(200);
});

test("S4: a key has so many heavy requests at once; each place is given back, also when the client hangs up", async () => {
  let arrived = 0;
  const gate = Promise.withResolvers<void>();
  const { url } = await startArchive(database.url, {
    limits: { ...LIMITS, perKey: { read: 4, export: 1 } },
    routes: [
      (app) =>
        void app.get("/slow", { config: { access: { scope: "read" }, heavy: "export" } }, async () => {
          arrived += 1;
          await gate.promise;
          return "done";
        }),
    ],
  });
  onTestFinished(() => gate.resolve());
  const [one, two] = [await makeKey(database, "reader"), await makeKey(database, "reader")];
  const first = call(url, "/slow", one.key);
  await vi.waitFor(() => expect(arrived).toBe(1));
  const again = await call(url, "/slow", one.key);
  expect(again.status).toBe(429);
  expect(await again.json()).toMatchObject({ type: "urn:longwatch:problem:too-many-at-once" });

  const hangUp = new AbortController();
  const second = call(url, "/slow", two.key, { signal: hangUp.signal });
  await vi.waitFor(() => expect(arrived).toBe(2));
  expect((await call(url, "/slow", two.key)).status).toBe(429);
  hangUp.abort();
  await expect(second).rejects.toThrow(/abort/);
  const answers: Promise<Response>[] = [];
  await vi.waitFor(() => {
    answers.push(call(url, "/slow", two.key));
    expect(arrived).toBe(3);
  });

  gate.resolve();
  expect((await first).status).toBe(200);
  const others = await Promise.all(answers);
  expect(others.filter(({ status }) => status === 200)).not.toEqual([]);
  await vi.waitFor(async () => expect((await call(url, "/slow", one.key)).status).toBe(200));
});

test("a question that keeps the database too long is stopped, and the answer says how to narrow it", async () => {
  const archive = createDatabase({
    url: database.url,
    max: 1,
    applicationName: "test",
    statementTimeoutMs: 50,
    onError: () => undefined,
  });
  onTestFinished(() => archive.close());
  const { url } = await startArchive(database.url, {
    routes: [
      (app) => {
        const config = { access: "public" } as const;
        app.get("/slow", { config }, () => archive.db.execute("select pg_sleep(60)"));
        app.get("/bare", { config: { ...config, errorForm: "bare" } }, () =>
          archive.db.execute("select pg_sleep(60)"),
        );
      },
    ],
  });
  const native = await call(url, "/slow");
  const bare = await call(url, "/bare");

  expect(native.status).toBe(503);
  const problem = await native.json();
  expect(problem).toMatchObject({
    type: "urn:longwatch:problem:query-too-slow",
    detail: expect.stringContaining("shorter time range"),
  });
  expect(JSON.stringify(problem)).not.toMatch(/pg_sleep|57014|canceling/);
  expect(await bare.json()).toMatchObject({ status: 503, detail: expect.stringContaining("took too long") });
});

test("while keys cannot be checked nobody gets in, and nothing is said about the database", async () => {
  const { url, lines } = await startArchive(database.url, {
    authenticate: () => Promise.reject(new Error("connect ECONNREFUSED 10.1.2.3:5432")),
  });
  const response = await call(url, "/metrics", wrongKey(1));

  expect(response.status).toBe(503);
  expect(await response.text()).not.toContain("10.1.2.3");
  expect(lines.join("")).toContain("ECONNREFUSED");
});

test("a search that would read too much is refused with how to narrow it", () => {
  const refuseCostly = createRefuseCostly(1_000_000);

  expect(() => refuseCostly({ rows: 1_000_000 })).not.toThrow();
  expect(() => refuseCostly({ rows: 12_345_678 })).toThrow(
    /as much as reading 12,000,000 events; at most 1,000,000 are allowed. Choose a shorter time range/,
  );
});

test("S14: a key is in no log line, whatever becomes of its request", async () => {
  const { url, lines } = await startArchive(database.url, {
    routes: [
      (app) =>
        void app.get("/fails", { config: { access: { scope: "read" } } }, (asked) => {
          throw new Error(`failed for ${JSON.stringify(asked.headers.host)}`);
        }),
    ],
  });
  const { key } = await makeKey(database, "reader");
  for (const path of ["/fails", "/metrics", "/apikey", "/nothing", `/fails?AccessKey=${key}`]) {
    await call(url, path, key);
    await call(url, path, `${key}x`);
  }

  expect(lines.join("")).toContain("request failed");
  expect(lines.join("")).not.toContain(key.split("_")[2]);
});

test("S3, S17: nobody without a key gets anything but the probes and a refusal", async () => {
  const known: { method: string; url: string }[] = [];
  const { url } = await startArchive(database.url, {
    routes: [
      (app) =>
        void app.addHook("onRoute", (route) => {
          for (const method of [route.method].flat()) known.push({ method, url: route.url });
        }),
    ],
  });
  const open = [];
  for (const { method, url: path } of known) {
    const { status } = await call(url, path.replaceAll(/:\w+/g, "1"), undefined, { method });
    if (status !== 401) open.push(`${method} ${path} ${status}`);
  }

  expect(known.length).toBeGreaterThan(4);
  expect(open).toEqual([]);
});

test("a limiter remembers its maximum of keys, and one that keeps asking is not forgotten", () => {
  const limiter = createRateLimiter({ quota: 1, windowMs: 1_000, maxKeys: 100 });
  for (let n = 0; n < 1_000; n += 1) {
    limiter.take(`key ${n}`, 0);
    expect(limiter.take("busy", 0).isAllowed).toBe(n === 0);
  }

  expect(limiter.take("key 901", 0).isAllowed).toBe(false);
  expect(limiter.take("key 900", 0).isAllowed).toBe(true);
});

test("a limiter lets through its quota at once and refills it evenly", () => {
  const limiter = createRateLimiter({ quota: 7, windowMs: 60_000, maxKeys: 10 });
  const take = (nowMs: number) => limiter.take("a", nowMs).isAllowed;

  expect(Array.from({ length: 8 }, () => take(0))).toEqual([...Array(7).fill(true), false]);
  let allowed = 0;
  for (let nowMs = 1; nowMs <= 600_000; nowMs += 1) allowed += Number(take(nowMs));
  expect(allowed).toBe(70);
});

test("a clock that is set back blocks no key for longer than a window", () => {
  const limiter = createRateLimiter({ quota: 1, windowMs: 1_000, maxKeys: 10 });
  limiter.take("a", 3_600_000);

  expect(limiter.take("a", 0)).toMatchObject({ isAllowed: false, retryAfterMs: 1_000 });
});
