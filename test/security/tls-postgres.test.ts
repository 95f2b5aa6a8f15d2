import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { parseConfig } from "#config/config.ts";
import { createDatabase } from "#db/client.ts";
import { pickPostgresUser } from "#store/embedded/place-cluster.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#store/embedded/postgres.ts";
import { createSelfSigned } from "../delivery/support/self-signed.ts";
import { startServiceProcess } from "../faults/service-process.ts";

const PATIENCE = { timeout: 60_000, interval: 50 };
const folder = mkdtempSync(path.join(tmpdir(), "longwatch-tls-"));
const ca = path.join(folder, "ca.pem");
const otherCa = path.join(folder, "other.pem");
let server: EmbeddedPostgres;
let plainUrl: string;

/** Postgres with a certificate for `localhost`, which takes TLS alone. */
beforeAll(async () => {
  chmodSync(folder, 0o755);
  const { key, cert } = createSelfSigned("localhost");
  const keyFile = path.join(folder, "server.key");
  writeFileSync(ca, cert);
  writeFileSync(otherCa, createSelfSigned("localhost").cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  const user = pickPostgresUser();
  if (user !== null) chownSync(keyFile, user.uid, user.gid);
  const settings = ["fsync=off", "ssl=on", `ssl_cert_file=${ca}`, `ssl_key_file=${keyFile}`];
  server = await startEmbeddedPostgres({ dataDir: folder, settings });
  plainUrl = server.url;
  const client = new pg.Client({ connectionString: plainUrl });
  await client.connect();
  await client.query(
    `create temp table hba (line text);
     insert into hba values ('hostssl all all 127.0.0.1/32 scram-sha-256')`,
  );
  const { rows } = await client.query<{ file: string }>("select current_setting('hba_file') as file");
  await client.query(`copy hba to '${rows[0]?.file}'`);
  await client.query("select pg_reload_conf()");
  await client.end();
  await vi.waitUntil(async () => /no encryption/.test(await connect(plainUrl)), PATIENCE);
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The server's address by name, as a user writes it into DATABASE_URL. */
function urlWith(parameters: string, hostname = "localhost"): string {
  const url = new URL(plainUrl);
  url.hostname = hostname;
  url.search = parameters;
  return url.href;
}

/** Connects as a process opens its pools; returns "ok" over TLS, else the reason of the failure. */
async function connect(url: string): Promise<string> {
  const database = createDatabase({ url, max: 1, applicationName: "test", onError: () => undefined });
  try {
    const { rows } = await database.pool.query<{ ssl: boolean }>(
      "select ssl from pg_stat_ssl where pid = pg_backend_pid()",
    );
    return rows[0]?.ssl === true ? "ok" : "in the clear";
  } catch (thrown) {
    return (thrown as Error).message;
  } finally {
    await database.close();
  }
}

const read = (parameters: string, hostname?: string) =>
  parseConfig({ DATABASE_URL: urlWith(parameters, hostname) }).databaseUrl?.reveal() ?? "";

test.each(["verify-full", "verify-ca", "require", "prefer", "allow"])(
  "S21: with sslmode=%s the certificate has to be of the authority and for the name",
  async (mode) => {
    expect(await connect(read(`sslmode=${mode}&sslrootcert=${ca}`))).toBe("ok");
    expect(await connect(read(`sslmode=${mode}&sslrootcert=${otherCa}`))).toMatch(/self-signed certificate/);
    expect(await connect(read(`sslmode=${mode}`))).toMatch(/self-signed certificate/);
    expect(await connect(read(`sslmode=${mode}&sslrootcert=${ca}`, "127.0.0.1"))).toMatch(/altnames/);
  },
);

test("S21: only who says so connects without looking at the certificate, or in the clear", async () => {
  expect(await connect(read("sslmode=no-verify"))).toBe("ok");
  expect(await connect(read("uselibpqcompat=true&sslmode=require"))).toBe("ok");
  expect(await connect(read("sslmode=disable"))).toMatch(/no encryption/);
  expect(await connect(read("ssl=false"))).toMatch(/no encryption/);
  expect(await connect(read(""))).toMatch(/no encryption/);
});

test("S21: every connection of the service is encrypted: migration, queues and their listeners, pools, commands", async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "longwatch-tls-data-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const env = {
    DATABASE_URL: urlWith(`sslmode=require&sslrootcert=${ca}`),
    LONGWATCH_DATA_DIR: dataDir,
    LONGWATCH_PORT: "0",
    EDGE_API_URL: "http://127.0.0.1:9",
    EDGE_API_KEY: "key",
    EDGE_SHIELD_ZONES: "101",
  };
  const service = startServiceProcess(env);
  onTestFinished(async () => {
    service.child.kill("SIGKILL");
    await service.exited;
  });
  await expect.poll(() => service.printed(), PATIENCE).toContain("service started");
  // The server accepts only TLS, so a connection proves that TLS was used.
  const onlooker = createDatabase({
    url: read(`sslrootcert=${ca}`),
    max: 1,
    applicationName: "test",
    onError: () => undefined,
  });
  onTestFinished(() => onlooker.close());
  const names = async () => {
    const { rows } = await onlooker.pool.query<{ name: string }>(
      `select distinct application_name as name from pg_stat_activity join pg_stat_ssl using (pid)
       where ssl and client_addr is not null`,
    );
    return rows.map(({ name }) => name);
  };
  await expect.poll(names, PATIENCE).toEqual(expect.arrayContaining(["longwatch", "longwatch queue"]));

  const printed = service.printed();
  expect(printed).not.toContain("no encryption");
  expect(printed).not.toContain("queue operation failed");
  // The driver's warning about weaker modes is about another meaning than the one used here.
  expect(printed).not.toContain("SECURITY WARNING");
  expect(printed).not.toContain("is not encrypted");
});

test.each([
  [
    "start",
    "another authority",
    () => urlWith(`sslmode=require&sslrootcert=${otherCa}`),
    "sslrootcert=/path/ca.pem",
  ],
  [
    "status",
    "another name",
    () => urlWith(`sslmode=verify-full&sslrootcert=${ca}`, "127.0.0.1"),
    "use a name in DATABASE_URL that the certificate is for",
  ],
  ["status", "no TLS", () => urlWith("sslmode=disable"), "say sslmode=verify-full in DATABASE_URL"],
])("S21: `%s` with %s ends with what to do, and shows no password", async (command, _, url, advice) => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "longwatch-tls-data-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const env = { DATABASE_URL: url(), LONGWATCH_DATA_DIR: dataDir, LONGWATCH_PORT: "0" };
  const service = startServiceProcess(env, command);
  expect(await service.exited).toBe(1);
  expect(service.printed()).toContain(advice);
  expect(service.printed()).not.toContain(new URL(plainUrl).password);
});
