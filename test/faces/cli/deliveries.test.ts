import { beforeAll, beforeEach, describe, expect } from "vitest";
import { channelsCommand } from "#faces/cli/channels/channels.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { MigratedDatabase } from "../../db/migrated-database.ts";
import { type DeliverWorld, openDeliverWorld, type Receiver } from "../../delivery/deliver-world.ts";
import { testBothWays, type Way } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";

const deliveriesCommand = await loadSubject("deliveries");

let database: MigratedDatabase;
let receiver: Receiver;
let world: DeliverWorld;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, receiver, world } = opened);
  return opened.close;
});

beforeEach(async () => {
  await world.clear();
  await clearAudit(database);
});

async function audited() {
  const { rows } = await database.pool.query<{ subject: string }>(
    "select actor, action, subject, details from audit_entries where action <> 'key.created' order by id",
  );
  return rows;
}

let way: Way;
const run: Way["run"] = (...args) => way.run(...args);
const place = () => ({ database, now: Date.now() });
const testDeliveries = testBothWays(deliveriesCommand, place, {
  channels: (read, io) => channelsCommand(read, read, io),
});

interface Listed {
  readonly channels: { readonly name: string; readonly circuit: string }[];
  readonly items: { readonly id: number; readonly state: string; readonly reason: string }[];
}

async function list(...args: string[]): Promise<Listed> {
  return JSON.parse((await run("list", "--json", ...args)).out) as Listed;
}

/** Raises an alert whose messages the channel has refused for good. */
async function refused(...reasons: Parameters<typeof world.raise>[0]): Promise<number> {
  const id = await world.raise(reasons);
  receiver.status("chat", 404);
  await world.run();
  receiver.status("chat", 204);
  return id;
}

describe("deliveries list", () => {
  testDeliveries("shows the newest deliveries with state and reason", async (given) => {
    way = given;
    await refused("first", "resolved");
    await world.raise(["first"], ["chat"]);
    await world.run();
    const { code, err, out } = await run("list");

    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(
      out
        .split("\n")
        .filter((line) => /^\d/.test(line))
        .map((line) => line.split(/ {3,}/).slice(3, 5).join(", ")),
    ).toEqual(["delivered, 1", "needless, 0", "dead, 1"]);
    expect(out).toMatch(/: ENDPOINT_REJECTED: 127\.0\.0\.1:\d+ answered 404\n/);
  });

  testDeliveries.both("is narrowed by state, channel and number", async (given) => {
    way = given;
    await refused("first", "resolved");
    await world.raise(["first"], ["chat", "pager"]);
    await world.run(["chat"]);

    expect((await list("--state", "dead")).items.map(({ state }) => state)).toEqual(["dead"]);
    expect((await list("--state", "pending")).items).toMatchObject([{ channel: "pager" }]);
    expect((await list("--channel", "chat")).items).toHaveLength(3);
    expect((await list("--limit", "2")).items).toHaveLength(2);
    expect((await run("list", "--channel", "terminal")).out).toBe("No delivery matches.\n");
  });

  testDeliveries("shows a circuit that is open, and half-open once it may be probed", async (given) => {
    way = given;
    const channels = async () =>
      (JSON.parse((await run("channels", "list", "--json")).out) as { items: object[] }).items;
    for (let alert = 0; alert < 8; alert += 1) await world.raise(["first"]);
    receiver.status("chat", 500);
    await world.run();
    await world.run();
    expect(await channels()).toMatchObject([
      { name: "chat", circuit: "open", waiting: 8 },
      { name: "terminal", circuit: "closed", isConfigured: true },
    ]);
    expect((await run("channels", "list")).out).toMatch(
      /\nchat +not configured +no, next attempt \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)? UTC +8 +0 +ENDPOINT_UNAVAILABLE/,
    );
    await world.pass(MINUTE_MS);
    expect((await channels())[0]).toMatchObject({ name: "chat", circuit: "half-open" });
  });

  testDeliveries("is harmless to a terminal, whatever texts an alert has", async (given) => {
    way = given;
    await world.raise(["first"]);
    const hostile = JSON.stringify({ headline: "\u001b[2J\u202eevil" });
    await database.pool.query("update notifications set content = content || $1::jsonb", [hostile]);

    expect((await run("list")).out).toContain("\\u{1b}[2J\\u{202e}evil");
  });

  testDeliveries("names every mistake at once", async (given) => {
    way = given;
    expect(await run("list", "--state", "lost", "--limit", "0", "extra")).toEqual({
      code: 2,
      out: "",
      err: [
        "longwatch deliveries list: 3 mistakes, nothing was read or stored",
        '  - "extra" is not an argument or option of this command',
        '  - --state "lost" must be one of pending, sending, delivered, dead, needless',
        '  - --limit "0" must be a whole number from 1 to 10,000',
        "",
      ].join("\n"),
    });
  });
});

describe("deliveries replay", () => {
  testDeliveries.both(
    "sends one dead delivery again, under its own key, and the resolve that was dropped for it",
    async (given) => {
      way = given;
      await refused("first", "resolved");
      const [dead] = (await list("--state", "dead")).items;
      const ran = await run("replay", String(dead?.id), ...way.by("alice"));
      expect(ran).toEqual({ code: 0, err: "", out: "replayed: 2.\n" });
      expect(await audited()).toEqual([
        {
          actor: way.way === "over HTTP" ? expect.stringMatching(/^key \w+ \(alice\)$/) : "alice",
          action: "delivery.replayed",
          subject: `delivery ${dead?.id}`,
          details: { replayed: 2, outdated: 0, notDead: 0 },
        },
      ]);
      await world.run();

      expect(receiver.heard()).toEqual(["chat first", "chat first", "chat resolved"]);
      expect(receiver.received[1]?.id).toBe(receiver.received[0]?.id);
      expect((await list("--state", "dead")).items).toEqual([]);
    },
  );

  testDeliveries("of a channel makes all of its dead letters due and nothing else", async (given) => {
    way = given;
    await refused("first");
    await refused("first");
    await world.raise(["first"], ["pager"]);
    receiver.status("pager", 404);
    await world.run(["chat", "pager"]);
    const before = receiver.received.length;
    expect((await run("channels", "replay", "chat")).out).toBe("replayed: 2.\n");
    await world.run(["chat", "pager"]);

    // Besides, the channel that works again is notified that the other fails.
    const replayed = receiver.received.slice(before).filter(({ message }) => message.kind !== "self");
    expect(replayed.map(({ channel, message }) => `${channel} ${message.reason}`)).toEqual([
      "chat first",
      "chat first",
    ]);
    expect((await run("channels", "replay", "chat")).out).toBe("replayed: 0.\n");
    expect((await audited()).map(({ subject }) => subject)).toEqual(["channel chat"]);
  });

  testDeliveries("has three new days, however old the delivery is", async (given) => {
    way = given;
    await refused("first");
    await world.pass(5 * 24 * 60 * MINUTE_MS);
    await run("channels", "replay", "chat");
    receiver.status("chat", 503);
    await world.run();

    expect(await world.outbox()).toEqual(["1 first chat pending"]);
  });

  testDeliveries("leaves alone what a later message has overtaken", async (given) => {
    way = given;
    const id = await refused("first");
    await world.add(id, 2, "worse");
    await world.run();
    const [dead] = (await list("--state", "dead")).items;
    const { code, err } = await run("replay", String(dead?.id));

    expect(code).toBe(2);
    expect(err).toContain(`Delivery ${dead?.id} is outdated. Its channel was already sent a later message`);
    expect((await run("channels", "replay", "chat")).out).toBe(
      "replayed: 0; still dead because of a later message: 1.\n",
    );
  });

  testDeliveries.both("refuses what is not dead, not there, not a number or not said", async (given) => {
    way = given;
    await world.raise(["first"]);
    const [pending] = (await list()).items;
    const refusals = [];
    for (const args of [[String(pending?.id)], ["999999"], ["x"], [], ["1", "--channel", "chat"]]) {
      const { code, err } = await run("replay", ...args);
      refusals.push([code, err.trim().split("\n").at(-1)]);
    }
    expect(refusals).toEqual([
      [2, `  - Delivery ${pending?.id} is not dead. Only dead deliveries can be sent again.`],
      [1, "longwatch deliveries replay: There is no delivery 999999, or this key may not see it."],
      [2, '  - <id> "x" must be a whole number'],
      [2, "  - <id> is missing"],
      [2, '  - "--channel" is not an argument or option of this command'],
    ]);
  });
});
