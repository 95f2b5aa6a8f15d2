import { expect, test } from "vitest";
import { ServiceError } from "#lib/errors.ts";
import { createLog, type LogOptions, prettyLine } from "#lib/log.ts";
import { createSecret } from "#lib/secret.ts";

function capture(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const log = createLog({ level: "info", stream: { write: (line) => lines.push(line) }, ...options });
  const fields = () => JSON.parse(lines.at(-1) ?? "") as Record<string, unknown>;
  return { log, lines, fields };
}

class PlatformDown extends ServiceError {
  readonly code = "DOWN";
  readonly disposition = "retry";
  readonly status = 503;
  readonly headers = { AccessKey: "canary" };
  readonly request = { body: "canary" };
}

test("a line is JSON with an ISO time, the level's name, the event and its fields", () => {
  const { log, lines, fields } = capture();
  log.info({ zoneId: 101, since: new Date(0), rows: 12n }, "events stored");

  expect(lines).toHaveLength(1);
  expect(fields()).toEqual({
    level: "info",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    zoneId: 101,
    since: "1970-01-01T00:00:00.000Z",
    rows: "12",
    msg: "events stored",
  });
});

test("lines below the level are not written", () => {
  const { log, lines } = capture({ level: "warn" });
  log.info({}, "events stored");
  log.warn({}, "page quarantined");

  expect(lines).toHaveLength(1);
});

test("F70: a secret is written nowhere: by name, by type, inside a URL, deep down, or in somebody's message", () => {
  const secret = createSecret("canary/configured");
  const { log, lines } = capture({ secrets: [secret] });
  log.error(
    {
      accessKey: "canary-1",
      AUTHORIZATION: "Bearer canary-2",
      key: secret,
      deep: [{ nested: { Secret: "canary-3", headers: { "x-a": "canary-4" } } }],
      from: "postgres://user:canary-5@db/x and redis://:canary-6@cache",
      address: new URL("https://u:canary-7@host.test/"),
      error: new Error("connect to https://x/canary/configured failed", {
        cause: new PlatformDown("GET postgres://a:canary-8@h"),
      }),
    },
    "sent canary/configured",
  );
  log.error({ err: new PlatformDown("x") }, "poll failed");
  log.error(new Error("canary/configured"));

  expect(lines).toHaveLength(3);
  expect(lines.join("")).not.toContain("canary");
});

test("names that only look like a secret's are kept", () => {
  const { log, fields } = capture();
  log.info({ errorKey: "shield.date", dedupeKey: "a:1", tokens: 3, key: null }, "page read");

  expect(fields()).toMatchObject({ errorKey: "shield.date", dedupeKey: "a:1", tokens: 3, key: null });
});

test.each(["err", "error"])("an error under %s keeps code, disposition, status and causes", (name) => {
  const { log, fields } = capture();
  log.error({ [name]: new Error("poll failed", { cause: new PlatformDown("no answer") }) }, "job failed");

  expect(fields()[name]).toEqual({
    type: "Error",
    message: "poll failed",
    stack: expect.stringContaining("log.test.ts"),
    cause: { type: "Error", message: "no answer", code: "DOWN", disposition: "retry", status: 503 },
  });
});

test("hostile text stays on one line, is shortened, and cannot move a cursor or turn the reading direction", () => {
  const { log, lines, fields } = capture();
  log.info(
    { ua: `\u001b[2J\u202eevil\u2028\r\n${"x".repeat(100_000)}`, many: Array(10_000).fill("y") },
    "a\nb",
  );

  expect(lines[0]?.trimEnd()).toMatch(/^[\x20-\x7e…]+$/);
  expect(String(fields()["ua"]).length).toBeLessThanOrEqual(2_000);
  expect(lines[0]?.length).toBeLessThan(3_000);
});

test("circular values and bytes are logged in bounded size", () => {
  const { log, lines } = capture();
  const self: Record<string, unknown> = { body: Buffer.alloc(1_000_000), bytes: Buffer.alloc(1_000_000) };
  self["self"] = self;
  log.info(self, "seen");

  expect(lines[0]?.length).toBeLessThan(1_000);
  expect(lines[0]).toContain("[1000000 bytes]");
});

test("at a terminal a line is for people, with text that could be taken for a field in quotes", () => {
  const { log, lines } = capture({ pretty: true });
  log.warn({ zoneId: 101, reason: "no date=x", rule: "942100" }, "page quarantined");

  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d WARN  page quarantined zoneId=101 reason="no date=x" rule=942100\n$/,
  );
});

test("at a terminal, empty fields are left out, long lists are cut and trouble has another colour than routine", () => {
  const { log, lines } = capture({ pretty: "coloured" });
  log.info({ sealed: 0, gaps: 1, failed: {}, codes: [], days: ["a", "b", "c", "d", "e"] }, "hours decided");
  log.error({ zoneId: 101 }, "hours lost");
  expect(lines[0]).toContain('hours decided gaps=1 days=["a","b","c",… 2 more]\u001b[0m\n');
  expect(lines[0]?.startsWith("\u001b[2m")).toBe(true);
  expect(lines[1]?.startsWith("\u001b[31m")).toBe(true);
});

test("at a terminal an error is one line with its code, its place and its cause", () => {
  const { log, lines } = capture({ pretty: true });
  const cause = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" });
  log.warn({ err: new PlatformDown("platform is down", { cause }) }, "job failed");
  expect(lines[0]).toMatch(
    /WARN {2}job failed err="platform is down \(DOWN\): connect ECONNREFUSED 127\.0\.0\.1:1 \(ECONNREFUSED\) at [^|]+"\n$/,
  );
});

test("a secret that is added while the service runs is hidden from then on", () => {
  const secrets = [createSecret("first-canary")];
  const { log, lines } = capture({ secrets });
  secrets.push(createSecret("second-canary"));
  log.warn({ text: "first-canary second-canary" }, "told second-canary");
  expect(lines.join()).not.toContain("canary");
});

test("a line for people breaks at words where the terminal ends, and never inside a value", () => {
  const fields = { zoneId: 101, partitions: "p".repeat(50), more: 7 };
  const line = JSON.stringify({
    level: "info",
    time: "2026-11-20T15:10:00.000Z",
    msg: "pages were read",
    ...fields,
  });
  expect(prettyLine(line, false, 45)).toBe(
    [
      "15:10:00 INFO  pages were read zoneId=101",
      `               partitions=${"p".repeat(50)}`,
      "               more=7",
      "",
    ].join("\n"),
  );
  expect(prettyLine(line, false).trimEnd()).not.toContain("\n");
});

test("of a failed query the cause is written and no parameter, also if the connection had failed in another query", () => {
  const failed = (cause: Error) =>
    Object.assign(new Error("Failed query: insert\nparams: canary", { cause }), {
      query: "insert",
      params: ["canary"],
    });
  const { log, lines, fields } = capture();
  log.warn({ err: failed(failed(new Error("Connection terminated"))) }, "tick failed");

  expect(fields()).toMatchObject({ err: { message: "Connection terminated", query: "insert" } });
  expect(lines.join()).not.toContain("canary");
});
