import { execFile } from "node:child_process";
import { PassThrough, Readable } from "node:stream";
import { describe, expect } from "vitest";
import { edgeCommand } from "../../src/cli/edge.ts";
import { createSecret } from "../../src/secret.ts";
import { ACCESS_KEY, listPage, NOW, test } from "./support/edge-test.ts";
import { collector, type Ran, runCli } from "./support/run-cli.ts";

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

describe("what a terminal gets", () => {
  const hostile = "\u001b[2J\u202e\u009b31m\u200b";

  test("an error is one readable line on stderr, exit code 1, nothing on stdout", async ({ platform }) => {
    platform.reply(403, { Message: `No ${hostile}\nsecond line`, ErrorKey: "k" }, { "cdn-requestid": "r1" });
    const { code, out, err } = await runCli(platform.url, ["dns-zone", "check", "--name", "a.test"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      "longwatch edge: EDGE_FORBIDDEN check-dns-zone: No \\u001b[2J\\u202e\\u009b31m\\u200b\\u000asecond line (status 403, key k, request r1)\n  check what the key of EDGE_API_KEY may do\n",
    );
  });

  test("a refused key names the setting to check", async ({ platform }) => {
    platform.reply(401, "");
    const { code, err } = await runCli(platform.url, ["api-keys", "list"]);
    expect(code).toBe(1);
    expect(err).toContain("check EDGE_API_KEY");
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

test("a reader that goes away ends the command quietly", async ({ platform }) => {
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
  const entry = new URL("support/edge-entry.ts", import.meta.url).pathname;
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
