import { execFile } from "node:child_process";
import { PassThrough, Readable } from "node:stream";
import { describe, expect } from "vitest";
import { edgeCommand } from "#faces/cli/edge/edge.ts";
import { createSecret } from "#lib/secret.ts";
import { ACCESS_KEY, listPage, NOW, test } from "./support/edge-test.ts";
import { collector, type Ran, runCli } from "./support/run-cli.ts";

test("an export as JSON has its rows as items, by the names of the header", async ({ platform }) => {
  const csv = 'timestamp,logId,message\n1795255200000,a,"one, ""two"""\n1795255200001,b,\n';
  platform.reply(200, csv, { "content-type": "text/csv" });
  const { out, code } = await runCli(platform.url, [
    "events",
    "export",
    "--zone",
    "1",
    "--from",
    "-1h",
    "--json",
  ]);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual({
    items: [
      { timestamp: "1795255200000", logId: "a", message: 'one, "two"' },
      { timestamp: "1795255200001", logId: "b", message: "" },
    ],
    next: null,
  });
});

test("--json beside --body is no flag of the request, and a missing rule blames what was typed", async ({
  platform,
}) => {
  platform.reply(404, { StatusCode: 404, Success: false, Message: "No such rule." });
  const { code, err } = await runCli(platform.url, [
    "rules",
    "metrics",
    "--zone",
    "1",
    "--rule",
    "9",
    "--json",
  ]);
  expect(code).toBe(1);
  expect(err).toContain("check the typed ids");
  expect(err).not.toContain("EDGE_SHIELD_ZONES");
});

describe("--page-all", () => {
  test("joins the pages of a day into one document", async ({ platform }) => {
    platform.reply(
      200,
      listPage({ logs: [{ logId: "a" }, { logId: "b" }], hasMoreData: true, continuationToken: "t" }),
    );
    platform.reply(200, listPage({ logs: [{ logId: "c" }] }));
    const { out, code } = await runCli(platform.url, [
      "events",
      "list",
      "--zone",
      "1",
      "--date",
      "today",
      "--page-all",
    ]);
    expect(JSON.parse(out)).toMatchObject({
      logs: [{ logId: "a" }, { logId: "b" }, { logId: "c" }],
      hasMoreData: false,
      continuationToken: null,
    });
    expect(code).toBe(0);
  });

  test("joins an empty day into a valid document", async ({ platform }) => {
    platform.reply(200, listPage());
    expect(
      JSON.parse(
        (await runCli(platform.url, ["events", "list", "--zone", "1", "--date", "today", "--page-all"])).out,
      ),
    ).toMatchObject({ logs: [] });
  });

  test("joins groups of a grouped search and keys of the account", async ({ platform }) => {
    platform.reply(200, { groups: [{ count: 1 }], total: 2, totalPages: 2, page: 0 });
    platform.reply(200, { groups: [{ count: 2 }], total: 2, totalPages: 2, page: 1 });
    const search = await runCli(platform.url, [
      "events",
      "search",
      "--zone",
      "1",
      "--from",
      "-1h",
      "--group-by",
      "ip",
      "--page-size",
      "1",
      "--page-all",
    ]);
    expect(JSON.parse(search.out)).toMatchObject({ groups: [{ count: 1 }, { count: 2 }], total: 2 });
    platform.reply(200, { Items: [{ Id: 1 }], HasMoreItems: true });
    platform.reply(200, { Items: [{ Id: 2 }], HasMoreItems: false });
    expect(JSON.parse((await runCli(platform.url, ["api-keys", "list", "--page-all"])).out)).toMatchObject({
      Items: [{ Id: 1 }, { Id: 2 }],
    });
  });

  test("masks the account's keys on one page and on all, unless --reveal asks for them", async ({
    platform,
  }) => {
    const keys = ["3f2a9c71-5c1e-4a67-9f3e-0c9d", "short"];
    const answer = { Items: keys.map((Key, Id) => ({ Id, Key })), HasMoreItems: false };
    const list = async (...flags: string[]) => {
      platform.reply(200, answer);
      const { out } = await runCli(platform.url, ["api-keys", "list", ...flags]);
      return JSON.parse(out).Items.map(({ Key }: { Key: string }) => Key);
    };
    for (const flags of [[], ["--page-all"]]) {
      expect(await list(...flags)).toEqual(["3f2a********", "********"]);
      expect(await list(...flags, "--reveal")).toEqual(keys);
    }
  });

  test("says so when the tokens run in a circle", async ({ platform }) => {
    platform.reply(200, listPage({ hasMoreData: true, continuationToken: "t" }));
    platform.reply(200, listPage({ hasMoreData: true, continuationToken: "t" }));
    const { code, err } = await runCli(platform.url, [
      "events",
      "list",
      "--zone",
      "1",
      "--date",
      "today",
      "--page-all",
    ]);
    expect(code).toBe(1);
    expect(err).toContain("may be incomplete");
  });

  test("ends with an error when tokens never repeat and pages bring nothing", async ({ platform }) => {
    for (let count = 0; count < 30; count++)
      platform.reply(200, listPage({ hasMoreData: true, continuationToken: `t${count}` }));
    const args = ["events", "list", "--zone", "1", "--date", "today", "--page-all"];
    const { code, out, err } = await runCli(platform.url, args);
    expect(code).toBe(1);
    expect(err).toContain("the pages do not end");
    expect(() => JSON.parse(out) as unknown).toThrow(SyntaxError);
    expect(platform.requests).toHaveLength(21);
  });

  test("ends with an error when page after page shows the same rows", async ({ platform }) => {
    for (let page = 0; page < 30; page++)
      platform.reply(200, { rows: [{ logId: "a" }], total: 1_000, totalPages: 1_000, page });
    const search = ["events", "search", "--zone", "1", "--from", "-1h", "--page-size", "1", "--page-all"];
    const rows = await runCli(platform.url, search);
    expect([rows.code, rows.err]).toEqual([1, expect.stringContaining("the pages do not end")]);
    expect(platform.requests).toHaveLength(22);
  });

  test("ends with an error when page after page shows the same keys", async ({ platform }) => {
    for (let page = 0; page < 30; page++) platform.reply(200, { Items: [{ Id: 1 }], HasMoreItems: true });
    const { code, err } = await runCli(platform.url, ["api-keys", "list", "--page-all"]);
    expect([code, err]).toEqual([1, expect.stringContaining("the pages do not end")]);
    expect(platform.requests).toHaveLength(22);
  });

  test("goes on over a few empty pages to what comes behind them", async ({ platform }) => {
    for (let count = 0; count < 10; count++)
      platform.reply(200, listPage({ hasMoreData: true, continuationToken: `t${count}` }));
    platform.reply(200, listPage({ logs: [{ logId: "a" }] }));
    const args = ["events", "list", "--zone", "1", "--date", "today", "--page-all"];
    const { code, out } = await runCli(platform.url, args);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ logs: [{ logId: "a" }] });
  });

  test("leaves a document that cannot be taken for whole when a later page fails", async ({ platform }) => {
    platform.reply(200, listPage({ logs: [{ logId: "a" }], hasMoreData: true, continuationToken: "t" }));
    platform.reply(400, { title: "No.", status: 400 });
    const { code, out, err } = await runCli(platform.url, [
      "events",
      "list",
      "--zone",
      "1",
      "--date",
      "today",
      "--page-all",
    ]);
    expect(code).toBe(1);
    expect(err).toContain("EDGE_REJECTED");
    expect(() => JSON.parse(out) as unknown).toThrow(SyntaxError);
  });
});

describe("output on a terminal", () => {
  const hostile = "\u001b[2J\u202e\u009b31m\u200b";

  test("an error is one readable line on stderr, exit code 1, nothing on stdout", async ({ platform }) => {
    platform.reply(403, { Message: `No ${hostile}\nsecond line`, ErrorKey: "k" }, { "cdn-requestid": "r1" });
    const { code, out, err } = await runCli(platform.url, ["dns-zone", "check", "--name", "a.test"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      "longwatch edge: EDGE_FORBIDDEN check-dns-zone: No \\u001b[2J\\u202e\\u009b31m\\u200b\\u000asecond line (status 403, key k, request r1)\n  check what the key (EDGE_API_KEY or EDGE_API_KEY_FILE) may do\n",
    );
  });

  test("a refused key names the setting to check", async ({ platform }) => {
    platform.reply(401, "");
    const { code, err } = await runCli(platform.url, ["api-keys", "list"]);
    expect(code).toBe(1);
    expect(err).toContain(
      "check the key of EDGE_API_KEY, of the file that EDGE_API_KEY_FILE names, or of the account",
    );
    expect(err).not.toContain(ACCESS_KEY);
  });

  test("a rate limit says when to come back", async ({ platform }) => {
    platform.reply(429, "", { "retry-after": "120" });
    expect((await runCli(platform.url, ["api-keys", "list"])).err).toContain("try again in 120 s");
  });

  test("JSON holds no character that a terminal acts on and stays the same value", async ({ platform }) => {
    platform.reply(200, { success: true, ruleId: "1", recommendation: hostile });
    const { out } = await runCli(platform.url, ["rules", "recommend", "--zone", "1", "--rule", "1"]);
    expect(out.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(JSON.parse(out)).toMatchObject({ recommendation: hostile });
  });

  test("CSV is untouched in a pipe and harmless on a terminal", async ({ platform }) => {
    const csv = `timestamp,ua\r\n1,"${hostile}ü"\r\n`;
    const args = ["events", "export", "--zone", "1", "--from", "-1h"];
    platform.reply(200, csv);
    expect((await runCli(platform.url, args)).out).toBe(csv);
    platform.reply(200, csv);
    const shown = (await runCli(platform.url, args, { isTTY: true })).out;
    expect(shown).toBe('timestamp,ua\r\n1,"\\u001b[2J\\u202e\\u009b31m\\u200bü"\r\n');
  });

  test("a bad connection setting is a mistake, exit code 2", async () => {
    const { code, err } = await runCli("nowhere", ["api-keys", "list"]);
    expect(code).toBe(2);
    expect(err).toContain('"nowhere" must be an http or https URL');
  });
});

describe("a hint fits what the platform said", () => {
  test.for<[args: string, status: number, errorKey: string | null, hint: string]>([
    ["rules recommend --zone 1 --rule 2", 202, "not_found.waf_rule", "check the rule's id"],
    [
      "rules metrics --zone 1 --rule 2",
      202,
      "not_found_or_unauthorised_access.shieldzone",
      "EDGE_SHIELD_ZONES",
    ],
    ["rules recommend --zone 1 --rule 2", 404, null, "check the typed ids (--zone and --rule)"],
    ["rules recommend --zone 1 --rule 2", 202, "limit_reached.ai_recommendation", "AI recommendations"],
    ["rules metrics --zone 1 --rule 2", 202, "invalid_plan_type.bot_detection", "does not include this"],
    ["events search --zone 1 --from -1h", 202, "invalid_plan_type.event_logs", "does not include event logs"],
    ["events search --zone 1 --from -1h", 404, null, "EDGE_SHIELD_ZONES"],
    [
      "events list --zone 1 --date today",
      401,
      "invalid_datetime_window.event_logs",
      "within the last 72 hours",
    ],
    ["dns-zone check --name a.test", 404, null, "check EDGE_API_URL"],
  ])("%s: status %s with key %s", async ([args, status, errorKey, hint], { platform }) => {
    const errorResponse = { statusCode: status, success: false, message: "No.", errorKey };
    platform.reply(status, errorKey === null ? "" : { errorResponse });
    const { code, err } = await runCli(platform.url, args.split(" "));
    expect(code).toBe(1);
    expect(err.split("\n")[1]).toContain(hint);
  });

  test.for([
    ["pullZone.not_found", "check the pull zone's id"],
    ["pullzone.hostname_not_found", "check the hostname"],
  ] as const)("the key %s", async ([ErrorKey, hint], { platform }) => {
    platform.reply(404, { ErrorKey, Field: null, Message: "No." });
    const args = "hostname set-key-type --pull-zone 5 --hostname a.test --key-type rsa";
    expect((await runCli(platform.url, args.split(" "))).err).toContain(hint);
  });
});

describe("an event's odd values are shown", () => {
  const search = ["events", "search", "--zone", "1", "--from", "-1h"];
  const row = (log: string) =>
    `{"rows":[{"logId":"a","log":${log}}],"groups":null,"total":1,"totalPages":1,"page":0}`;

  test.for([
    ["deep nesting", (inner: string) => inner],
    [
      "deep nesting beside an integer beyond 2^53",
      (inner: string) => `{"id":12345678901234567890,"in":${inner}}`,
    ],
  ] as const)("%s in a log", async ([, wrap], { platform }) => {
    const depth = 50_000;
    const log = wrap("[".repeat(depth) + "]".repeat(depth));
    const args = [...search, "--page-all"];
    for (const typed of [search, args]) {
      platform.reply(200, row(log));
      const { code, out, err } = await runCli(platform.url, typed);
      expect([code, err]).toEqual([0, ""]);
      expect(out).toContain("[".repeat(depth) + "]".repeat(depth));
      expect(JSON.parse(out)).toMatchObject({ total: 1 });
    }
  });

  test("identifiers beyond 2^53 keep their digits", async ({ platform }) => {
    platform.reply(200, '{"shieldZoneId":9223372036854775807,"success":true,"recommendation":"ok"}');
    const advice = await runCli(platform.url, ["rules", "recommend", "--zone", "1", "--rule", "2"]);
    expect(JSON.parse(advice.out)).toMatchObject({ shieldZoneId: "9223372036854775807" });
    platform.reply(200, '{"Items":[{"Id":9223372036854775807,"Key":"k"}],"HasMoreItems":false}');
    const keys = await runCli(platform.url, ["api-keys", "list"]);
    expect(JSON.parse(keys.out)).toMatchObject({ Items: [{ Id: "9223372036854775807" }] });
  });

  test("a member of the metrics' overview that is no day of counters costs only itself", async ({
    platform,
  }) => {
    const day = { totalTriggers: 3, blockedRequests: 3, loggedRequests: 0, challengedRequests: 0 };
    const overviewPastTwentyEightDays = { "20-11-2026": day, average: 3.5, note: "x", gone: null, odd: [] };
    platform.reply(200, { data: { totalTriggers: 3, trend: { up: true }, overviewPastTwentyEightDays } });
    const { code, out } = await runCli(platform.url, ["rules", "metrics", "--zone", "1", "--rule", "2"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ data: { totalTriggers: 3, trend: { up: true } } });
    expect(
      (JSON.parse(out) as { data: Record<string, unknown> }).data["overviewPastTwentyEightDays"],
    ).toEqual({
      "20-11-2026": day,
    });
  });
});

describe("--timeout of an export", () => {
  const exporting = ["events", "export", "--zone", "1", "--from", "-1h"];

  test("ends a file that drips on", async ({ platform }) => {
    platform.handle((response) => {
      response.writeHead(200).write("timestamp\n");
      const timer = setInterval(() => response.write("1\n"), 5);
      response.on("close", () => clearInterval(timer));
    });
    const { code, err } = await runCli(platform.url, ["--timeout", "1", ...exporting]);
    expect(code).toBe(1);
    expect(err).toContain("EDGE_TIMEOUT");
  });

  test("ends one that never begins", async ({ platform }) => {
    platform.handle(() => {});
    const { code, err } = await runCli(platform.url, ["--timeout", "1", ...exporting]);
    expect([code, err]).toEqual([1, expect.stringContaining("EDGE_TIMEOUT")]);
  });
});

test("a reader that goes away ends the command without an error", async ({ platform }) => {
  platform.handle((response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write("timestamp\n".repeat(1_000)));
      if (!response.destroyed) response.once("drain", more);
    };
    more();
  });
  const stdout = Object.assign(new PassThrough(), { isTTY: false });
  stdout.once("readable", () => stdout.destroy());
  const err = collector();
  const codes: number[] = [];
  const edge = edgeCommand(() => ({ baseUrl: platform.url, accessKey: createSecret(ACCESS_KEY) }), {
    stdin: Readable.from([]),
    stdout,
    stderr: err.stream,
    clock: () => NOW,
    setExitCode: (code) => codes.push(code),
    exit: (code) => void codes.push(code),
  });
  await edge.parseAsync(["events", "export", "--zone", "1", "--from", "-1h"], { from: "user" });
  expect({ codes, err: err.text() }).toEqual({ codes: [], err: "" });
});

describe("as a process", () => {
  const entry = new URL("./support/edge-entry.ts", import.meta.url).pathname;
  const spawnEdge = (url: string, ...args: string[]) =>
    new Promise<Ran>((resolve) => {
      execFile(process.execPath, [entry, url, ACCESS_KEY, ...args], (error, out, err) => {
        resolve({ code: typeof error?.code === "number" ? error.code : 0, out, err });
      });
    });

  test("prints JSON and ends with 0", async ({ platform }) => {
    platform.reply(200, { Available: true });
    const { code, out } = await spawnEdge(platform.url, "dns-zone", "check", "--name", "a.test");
    expect({ code, out: JSON.parse(out) as unknown }).toEqual({ code: 0, out: { Available: true } });
  });

  test("ends with 1 after a failed call, with 2 after a mistake, with 0 after --help", async ({
    platform,
  }) => {
    platform.reply(404, "");
    const [failed, mistaken, unknown, helped] = await Promise.all([
      spawnEdge(platform.url, "dns-zone", "check", "--name", "a.test"),
      spawnEdge(platform.url, "dns-zone", "check"),
      spawnEdge(platform.url, "nothing"),
      spawnEdge(platform.url, "events", "search", "--help"),
    ]);
    expect([failed.code, mistaken.code, unknown.code, helped.code]).toEqual([1, 2, 2, 0]);
    expect(helped.out).toContain("--page-all");
  });
});

test("--limit cuts the rows of a search and asks for no page beyond", async ({ platform }) => {
  const rows = (page: number) => [{ logId: `a${page}` }, { logId: `b${page}` }];
  for (let page = 0; page < 4; page++)
    platform.reply(200, { rows: rows(page), total: 8, totalPages: 4, page });
  const search = ["events", "search", "--zone", "1", "--from", "-1h", "--page-size", "2", "--limit"];
  const { out, code } = await runCli(platform.url, [...search, "3"]);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ rows: [...rows(0), { logId: "a1" }], total: 8 });
  expect(platform.requests).toHaveLength(2);
  const wrong = await runCli(platform.url, [...search, "0"]);
  expect([wrong.code, wrong.err]).toEqual([
    2,
    expect.stringContaining('--limit "0" must be a whole number from 1'),
  ]);
});
