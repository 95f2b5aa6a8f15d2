import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createServer, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { explainTlsFailure } from "#lib/http.ts";
import { createSecret } from "#lib/secret.ts";
import { createQueueBackend } from "#store/queue/backend.ts";
import { createSelfSigned } from "../delivery/support/self-signed.ts";
import { recorder } from "../store/queue/support/recorder.ts";
import { openJobQueue } from "../store/queue/support/store.ts";
import { findTlsRedisServer, startTestRedis, type TestRedis } from "../support/redis.ts";

const WAIT = { timeout: 20_000 };
const GRACE_MS = 200;
const server = findTlsRedisServer();
const skipped = server === null;
const folder = mkdtempSync(path.join(tmpdir(), "longwatch-tls-redis-"));
const file = (name: string, text: string) => {
  writeFileSync(path.join(folder, name), text, { mode: 0o600 });
  return path.join(folder, name);
};
const { key, cert } = createSelfSigned("localhost");
const ca = file("ca.pem", cert);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function open(redisUrl: string, caFile: string | null) {
  const env = { REDIS_URL: redisUrl, ...(caFile === null ? {} : { LONGWATCH_REDIS_CA: caFile }) };
  const { redisUrl: url, redisCa } = parseConfig(env);
  if (url === null) throw new Error("no address");
  return createQueueBackend({
    redis: { url, ca: redisCa },
    databaseUrl: createSecret("postgres://127.0.0.1:1/none"),
  });
}

describe.each([
  [skipped ? "over TLS (skipped: no valkey-server or redis-server with TLS on PATH)" : "over TLS"],
])("%s", () => {
  let redis: TestRedis;

  beforeAll(async () => {
    if (server !== null) redis = await startTestRedis(server, { cert: ca, key: file("key.pem", key) });
  });
  afterAll(() => (skipped ? undefined : redis.stop()));

  const at = (hostname: string, scheme = "rediss") => `${scheme}://${hostname}:${new URL(redis.url).port}`;

  test.skipIf(skipped)(
    "S21: jobs run over rediss:// and REDISS:// with the authority of LONGWATCH_REDIS_CA, and the store is looked at",
    async () => {
      for (const scheme of ["rediss", "REDISS"]) {
        const { job, runs } = recorder(`over-${randomUUID()}`);
        const backend = open(at("localhost", scheme), ca);
        const jobQueue = openJobQueue(backend, [job]);
        jobQueue.startWorkers();
        expect(await jobQueue.enqueue(job.name, { zoneId: 101 }, "tls")).toBe(true);
        await expect.poll(() => runs, WAIT).toEqual([101]);
        expect(await backend.findMistake()).toBeNull();
        expect(jobQueue.errors).toEqual([]);
        await jobQueue.close(GRACE_MS);
      }
    },
  );

  test.skipIf(skipped)(
    "S21: a server without its authority, with another one, or under a name that its certificate is not for is sent nothing, and the error says what to do",
    async () => {
      const refuse = async (hostname: string, caFile: string | null, advice: string) => {
        const { job, runs } = recorder("never");
        const told: string[] = [];
        const jobQueue = openJobQueue(open(at(hostname), caFile), [job], {
          enqueueTimeoutMs: 500,
          onError: (_where, error) => told.push(explainTlsFailure(error, "Redis").message),
        });
        jobQueue.startWorkers();
        expect(await jobQueue.enqueue(job.name, { zoneId: 101 }, "tls")).toBe(false);
        await expect.poll(() => told.join("\n"), WAIT).toContain(advice);
        expect(runs).toEqual([]);
        await jobQueue.close(GRACE_MS);
      };
      const authority = "name the file of its authority in LONGWATCH_REDIS_CA";
      await Promise.all([
        refuse("localhost", null, authority),
        refuse("localhost", file("other.pem", createSelfSigned("localhost").cert), authority),
        refuse("127.0.0.1", ca, "use a name in REDIS_URL that the certificate is for"),
      ]);
    },
  );
});

test("S21: TLS names the server if its host is a name, and not if the host is an address", async () => {
  const names: unknown[] = [];
  const listener = createServer({ key, cert }, (socket: TLSSocket) => {
    names.push(socket.servername);
    socket.destroy();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void listener.close());
  await new Promise((resolve) => listener.once("listening", resolve));
  const { port } = listener.address() as AddressInfo;
  listener.on("tlsClientError", () => undefined);
  const backend = open(`rediss://localhost:${port}`, ca);
  await backend.findMistake().catch(() => undefined);
  expect(names).toEqual(["localhost"]);
});
