import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { describeConfig, parseServiceConfig } from "#config/config.ts";

const root = path.join(import.meta.dirname, "..", "..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");
const compose = read("docker-compose.yml");
const dockerfile = read("Dockerfile");

const variables = describeConfig().flatMap((entry) => entry.variables);

/** The entry of that name, up to the next of the same depth. */
function entry(name: string, depth = 2): string {
  const indent = " ".repeat(depth);
  const found = new RegExp(`^${indent}${name}:.*\\n((?:${indent} .*\\n|\\s*\\n)*)`, "m").exec(compose)?.[0];
  if (found === undefined) throw new Error(`docker-compose.yml has no entry ${name}`);
  return found;
}

const settings = [...entry("x-settings", 0).matchAll(/^ {2}([A-Z_]+):$/gm)].map(([, name = ""]) => name);
/** Settings that the image or the file itself sets, and settings that make no sense in a container. */
const fixed = [
  "DATABASE_URL",
  "DATABASE_URL_FILE",
  "REDIS_URL",
  "REDIS_URL_FILE",
  "LONGWATCH_KEY_DIR",
  "LONGWATCH_ARCHIVE_DIR",
  "LONGWATCH_REDIS_CA",
  "LONGWATCH_HOST",
  "LONGWATCH_PORT",
  "LONGWATCH_DATA_DIR",
];

test("every setting named in the compose file or the image is one the service knows", () => {
  const named = [...`${compose}${dockerfile}`.matchAll(/\b(?:EDGE|LONGWATCH|DATABASE|REDIS)_[A-Z_]+\b/g)];
  expect(named.length).toBeGreaterThan(15);
  expect(named.map(([name]) => name).filter((name) => !variables.includes(name))).toEqual([]);
});

test("every setting there is reaches the service, secrets as files too; none is dropped on the way", () => {
  // A command that asks a service elsewhere has these.
  const ofCommands = ["LONGWATCH_URL", "LONGWATCH_KEY", "LONGWATCH_KEY_FILE", "LONGWATCH_PLAIN_HTTP"];
  expect(new Set([...settings, ...fixed, ...ofCommands])).toEqual(new Set(variables));
  expect(settings.filter((name) => name.endsWith("_FILE")).length).toBeGreaterThan(5);
});

test("the pseudonym key is made in a volume of its own, which belongs to the image's user", () => {
  const folder = "/var/lib/longwatch-key";
  expect(entry("longwatch")).toContain(`LONGWATCH_KEY_DIR: ${folder}\n`);
  expect(entry("longwatch")).toContain(`- pseudonym-key:${folder}\n`);
  expect(entry("volumes", 0)).toContain("  pseudonym-key:\n");
  expect(dockerfile).toContain(`install --directory --owner=node --group=node --mode=0700 ${folder}\n`);
});

test("every container has a read-only file system, no new privileges, and no capability that its start does not need", () => {
  const services = [...compose.slice(compose.indexOf("\nservices:")).matchAll(/^ {2}(\w+):$/gm)].map(
    ([, name = ""]) => name,
  );
  const own = services.slice(0, services.indexOf("emulator") + 1);
  expect(own).toEqual(["longwatch", "settings", "postgres", "valkey", "emulator"]);
  for (const name of own) {
    const text = entry(name).includes("<<: *longwatch") ? entry("x-longwatch", 0) : entry(name);
    expect([name, ...(text.match(/(?<=^ +)(?:read_only|cap_drop|security_opt): .*$/gm) ?? [])]).toEqual([
      name,
      "read_only: true",
      "cap_drop: [ALL]",
      'security_opt: ["no-new-privileges:true"]',
    ]);
  }
  // The image of Postgres becomes its user itself; the others start as theirs.
  expect(compose.match(/cap_add: .*/g)).toEqual(["cap_add: [CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID]"]);
  expect(entry("postgres")).toContain("tmpfs: [/docker-entrypoint-initdb.d, /run/postgresql, /tmp]");
  expect(entry("valkey")).toContain("user: valkey");
});

test("every container has a memory limit, and every image an exact version that can be replaced by a digest", () => {
  for (const store of ["postgres", "valkey"]) expect(entry(store)).toMatch(/^ {4}mem_limit: \d+[gm]$/m);
  expect(entry("x-longwatch", 0)).toMatch(/^ {2}mem_limit: \d+g$/m);
  const images = [...compose.matchAll(/^ +image: (.*)$/gm)].map(([, image]) => image);
  expect(images).toEqual([
    "longwatch",
    expect.stringMatching(/^\$\{POSTGRES_IMAGE:-postgres:\d+\.\d+\}$/),
    expect.stringMatching(/^\$\{VALKEY_IMAGE:-valkey\/valkey:\d+\.\d+\.\d+\}$/),
  ]);
  expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+\.\d+\.\d+-bookworm-slim$/m);
});

test("the service gets the settings, and what it falls back to is complete and right", () => {
  const service = entry("longwatch");
  expect(service).toContain("<<: *settings");
  const fallbacks = [...service.matchAll(/^ {6}([A-Z_]+): \$\{\1:?-(.+)\}$/gm)];
  const env = Object.fromEntries(fallbacks.map(([, name, fallback]) => [name ?? "", fallback]));
  const { edge } = parseServiceConfig(env);
  expect({ url: edge.url, zones: edge.zones }).toEqual({ url: "http://emulator:8090", zones: [101, 102] });
  const emulator = entry("emulator");
  expect(emulator).toContain("--port=8090");
  expect(emulator).toContain("--zones=101,102");
  expect(emulator).toContain(`--access-key=${edge.key?.reveal()}`);
});

test("settings given by halves are refused before the service starts: the check sees them without the fallbacks", () => {
  expect(entry("settings")).toContain("environment: *settings");
  expect(entry("settings")).toContain("command: [config, check]");
  expect(entry("longwatch")).toContain("settings: { condition: service_completed_successfully }");
});

test("no variable has to be set for the file to be read, and no secret is in it", () => {
  expect(compose).not.toMatch(/\$\{[A-Z_]+:?\?/);
  const secrets = describeConfig().filter((entry) => entry.variables.length > 1);
  for (const { variables } of secrets) {
    const given = [...compose.matchAll(new RegExp(`^ +${variables[0]}: (.+)$`, "gm"))].map(
      ([, text]) => text,
    );
    expect(given).toEqual(
      { EDGE_API_KEY: ["${EDGE_API_KEY-emulator-access-key}"], REDIS_URL: ["redis://valkey:6379"] }[
        variables[0] ?? ""
      ] ?? [],
    );
  }
  expect(compose).not.toMatch(/POSTGRES_PASSWORD:/);
});

test("the stores keep what they are given: Postgres 18 where its image keeps data, Valkey with AOF and no eviction", () => {
  expect(entry("postgres")).toMatch(/image: \$\{POSTGRES_IMAGE:-postgres:18\./);
  expect(entry("postgres")).toMatch(/- postgres:\/var\/lib\/postgresql$/m);
  expect(entry("valkey")).toMatch(/image: \$\{VALKEY_IMAGE:-valkey\/valkey:8\./);
  expect(entry("valkey")).toContain("- --appendonly yes");
  expect(entry("valkey")).toContain("- --maxmemory-policy noeviction");
});

test("only the service is reached from outside, and only from this machine", () => {
  expect([...compose.matchAll(/^ +ports: (.*)$/gm)].map(([, ports]) => ports)).toEqual([
    '["127.0.0.1:${LONGWATCH_PORT:-8080}:8080"]',
  ]);
  expect(dockerfile).toContain("LONGWATCH_PORT=8080");
  for (const store of ["postgres", "valkey"]) expect(entry(store)).toContain("networks: [stores]");
  expect(compose).toMatch(/^ {2}stores:\n {4}internal: true$/m);
});

test("the service has as long to stop as it gives itself, and a little more", () => {
  const deadlineMs = Number(
    /STOP_DEADLINE_MS = ([\d_]+);/.exec(read("src/faces/cli/start/start.ts"))?.[1]?.replaceAll("_", ""),
  );
  const graceSeconds = Number(/stop_grace_period: (\d+)s/.exec(entry("longwatch"))?.[1]);
  expect(deadlineMs).toBeGreaterThan(0);
  expect(graceSeconds * 1_000).toBeGreaterThan(deadlineMs);
});
