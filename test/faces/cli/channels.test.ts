import { writeFileSync } from "node:fs";
import path from "node:path";
import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { channelsCommand } from "#faces/cli/channels/channels.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { type ReplyQueue, startReplyQueue } from "../../platform/support/reply-queue.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { runStoreCommand } from "./run-store-command.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
let receiver: ReplyQueue;

beforeEach(async () => {
  receiver = await startReplyQueue();
});

afterEach(() => receiver.close());

function run(args: readonly string[], over: Record<string, string> = {}) {
  const environment = {
    LONGWATCH_WEBHOOK_URL: `${receiver.url}/canary-path?token=canary`,
    LONGWATCH_WEBHOOK_SECRET: SECRET,
    LONGWATCH_SLACK_WEBHOOK_URL: `${receiver.url}/services/canary`,
    LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "true",
    ...over,
  };
  return runStoreCommand((read, io) => channelsCommand(read, read, io), environment, args, { now: 0 });
}

test("the configured channels are listed by name, without their addresses", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { code, out } = await run(["list"], { DATABASE_URL: database.url });
  expect(code).toBe(0);
  expect(out).toMatch(
    /^CHANNEL .*\nslack +slack +yes +0 +0\nterminal +terminal +yes +0 +0\nwebhook +webhook +yes +0 +0\n$/,
  );
  expect(out).not.toContain("canary");
});

test("a test message arrives signed, says that it is a test, and two of them are not one", async () => {
  receiver.reply(204);
  expect(await run(["test", "webhook"])).toEqual({
    code: 0,
    err: "",
    out: expect.stringMatching(
      /^channel webhook: the receiver accepted the test message\nNo configuration file was read\./,
    ),
  });
  const [request] = receiver.requests;
  const headers = request?.headers as Record<string, string>;
  const read = new Webhook(SECRET).verify(request?.body ?? "", headers) as { data: { headline: string } };
  expect(read.data).toMatchObject({ kind: "self", severity: "info", reason: "first", zoneId: null });
  expect(read.data.headline).toContain("TEST of channel webhook");
  receiver.reply(204);
  await run(["test", "webhook"]);
  expect(receiver.requests[1]?.headers["webhook-id"]).not.toBe(headers["webhook-id"]);
});

test("the terminal's test message is printed where the command runs", async () => {
  const { code, out } = await run(["test", "terminal"]);
  expect(code).toBe(0);
  expect(out).toContain("TEST of channel terminal. If you can read this, the channel works");
});

test("with --json the output is one document also where the channel is the terminal", async () => {
  const { out, err } = await run(["test", "terminal", "--json"]);
  expect(JSON.parse(out)).toMatchObject({ channel: "terminal", isDelivered: true });
  expect(err).toContain("TEST of channel terminal");
});

test("a test shows the configuration file's links, filled in: five in the message, all of them where it runs", async () => {
  const file = path.join(makeTemporaryFolder("links"), "longwatch.yaml");
  const more = Array.from({ length: 5 }, (_, index) => {
    return `  - { title: "Rule ${index}", url: "https://wiki.example/{rule}", matchers: { rule: ["94${index}*"] } }`;
  });
  writeFileSync(
    file,
    `links:\n  - { title: Dashboard, url: "https://g.example/?zone={zone}&from={from_ms}&to={to_ms}" }\n${more.join("\n")}\n`,
  );
  const environment = { LONGWATCH_CONFIG: file, EDGE_SHIELD_ZONES: "205,206" };
  receiver.reply(204);
  const before = Date.now();
  const { code, out } = await run(["test", "webhook"], environment);
  expect(code).toBe(0);
  const [, from = "", to = ""] =
    /Dashboard: https:\/\/g\.example\/\?zone=205&from=(\d+)&to=(\d+)\n/.exec(out) ?? [];
  expect(Number(to)).toBeGreaterThanOrEqual(before);
  expect(Number(to) - Number(from)).toBe(3_600_000);
  expect(out).toContain("  Rule 2: https://wiki.example/942100\n  Rule 3: https://wiki.example/943\n");
  expect(out).toContain("  Rule 4: https://wiki.example/944\n");
  const { data } = JSON.parse(receiver.requests[0]?.body ?? "");
  expect(data.links.map(({ title }: { title: string }) => title)).toEqual([
    "Dashboard",
    "Rule 0",
    "Rule 1",
    "Rule 2",
    "Rule 3",
  ]);
  receiver.reply(204);
  const { links } = JSON.parse((await run(["test", "webhook", "--json"], environment)).out);
  expect(links).toHaveLength(6);
  expect((await run(["test", "terminal"], environment)).out).toContain(
    "│ Dashboard: https://g.example/?zone=205",
  );
});

test.each([
  [403, "ENDPOINT_REJECTED", "become a dead letter"],
  [503, "ENDPOINT_UNAVAILABLE", "be retried"],
])(
  "a receiver that answers %i is reported with exit code 1 and without a secret",
  async (status, code, next) => {
    for (const channel of ["webhook", "slack"]) {
      receiver.reply(status, "canary");
      const ran = await run(["test", channel]);
      expect(ran.code).toBe(1);
      expect(ran.err).toContain(`channel ${channel}: not delivered: ${code}`);
      expect(ran.err).toContain(`a notification would ${next}`);
      expect(`${ran.out}${ran.err}`).not.toMatch(/canary|whsec_/);
    }
    receiver.reply(status);
    const { out } = await run(["test", "webhook", "--json"]);
    expect(JSON.parse(out)).toMatchObject({ channel: "webhook", isDelivered: false, code });
  },
);

test("an address that is not public is refused before anything is sent", async () => {
  const ran = await run(["test", "webhook"], { LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "false" });
  expect(ran.code).toBe(2);
  expect(ran.err).toContain("is not a public address (loopback)");
  expect(ran.err).not.toContain("canary");
  expect(receiver.requests).toEqual([]);
});

test("an unknown channel is a mistake that names those there are", async () => {
  for (const args of [["test", "pager\u001b[2J"], ["test"]]) {
    const { code, err } = await run(args);
    expect(code).toBe(2);
    expect(err).toContain("must be a channel: terminal, webhook, slack");
    expect(err).not.toContain("\u001b");
  }
});

test.each(["list", "test"])("%s explains itself with examples", async (name) => {
  const { code, out } = await run([name, "--help"]);
  expect(code).toBe(0);
  expect(out).toContain(`Examples:\n  npm run -s longwatch -- channels ${name}`);
});
