import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { spikes } from "#db/schema/spikes.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { email } from "#delivery/receivers/channels/email/email.ts";
import { terminal } from "#delivery/receivers/channels/terminal/terminal.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { at, createAlertWorld } from "../alerts/alert-world.ts";
import { attackerOf, incidentOf } from "../alerts/incident.ts";
import { insertSpike, repeatSpike } from "../alerts/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { countNamed } from "./support/forms.ts";
import { startMailServer } from "./support/mail-server.ts";
import { ANSWERS, PLAIN_ANSWER, POSTING } from "./support/receiver.ts";

const RULES = 5_000;
let database: MigratedDatabase;
let mail: Awaited<ReturnType<typeof startMailServer>>;
let receivers: Awaited<ReturnType<typeof startReceivers>>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  mail = await startMailServer();
  receivers = await startReceivers();
});
afterAll(async () => {
  await receivers.close();
  await mail.stop();
  await database.drop();
});

/** A receiver on a socket for every kind that posts, which answers as its vendor does and keeps what it is sent. */
async function startReceivers() {
  const bodies = new Map<string, string[]>(Object.keys(POSTING).map((kind) => [kind, []]));
  const servers = await Promise.all(
    Object.keys(POSTING).map(async (kind) => {
      const { body: answer } = ANSWERS[kind] ?? PLAIN_ANSWER;
      const server = createServer((request: IncomingMessage, response: ServerResponse) => {
        const chunks: Buffer[] = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk));
        request.on("end", () => {
          bodies.get(kind)?.push(Buffer.concat(chunks).toString());
          response.writeHead(200).end(typeof answer === "string" ? answer : JSON.stringify(answer));
        });
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return { kind, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
    }),
  );
  return {
    bodies,
    notifiers: servers.map(({ kind, url }): [string, Notifier] => {
      const open = POSTING[kind];
      if (open === undefined) throw new Error(kind);
      return [kind, { ...open(url), name: kind }];
    }),
    async close(): Promise<void> {
      for (const { server } of servers) {
        server.closeAllConnections();
        server.close();
        await once(server, "close");
      }
    },
  };
}

/** Returns the text that a kind was sent, without the escapes of JSON and mail. */
function readAll(sent: readonly string[]): Set<string> {
  const attached = /Content-Transfer-Encoding: base64\r\n(?:.+\r\n)*\r\n([A-Za-z0-9+/=\r\n]+)/g;
  const decoded = sent.map((text) =>
    text.replace(attached, (_, code: string) => Buffer.from(code, "base64").toString()),
  );
  return new Set(
    decoded
      .join("\n")
      .replaceAll("=\r\n", "")
      .replaceAll(/\\[nt]/g, " ")
      .match(/\b1\d{5}\b/g),
  );
}

test("F63: when 5,000 rules of one incident spike within a minute, every rule is found on every channel, in few messages", async () => {
  const printed: string[] = [];
  const stream = { write: (text: string, done: () => void) => (printed.push(text), done(), true) };
  const mailbox = email.open({
    name: "email",
    host: "127.0.0.1",
    port: mail.port,
    tls: "none",
    from: "alerts@longwatch.example",
    to: ["on-call@example.com"],
    clock: Date.now,
    network: { allowPrivateNetworks: true },
  });
  const screen = terminal.open({ name: "terminal", terminal: stream });
  const notifiers = new Map<string, Notifier>([
    ["terminal", screen],
    ...receivers.notifiers,
    ["email", mailbox],
  ]);
  const channels = [...notifiers.keys()];
  const world = createAlertWorld(database);
  const memberOf = await insertSpike(database.db, {
    openedAt: at(0),
    ...incidentOf(attackerOf("203.0.113.9")),
  });
  await insertSpike(database.db, { openedAt: at(0), ruleId: "100000", memberOf });
  await repeatSpike(database.db, RULES, MINUTE_MS);
  const deliver = () =>
    createDeliverAlertsJob({ database, notifiers, log: pino({ level: "silent" }) }).run(
      {} as never,
      new AbortController().signal,
    );

  await world.runAt(2, { routing: () => routeToAll(channels) });
  await deliver();
  const sent = (kind: string): readonly string[] =>
    kind === "terminal"
      ? printed
      : kind === "email"
        ? mail.mails.map(({ raw }) => raw)
        : (receivers.bodies.get(kind) ?? []);
  const counted = new Map(channels.map((kind) => [kind, sent(kind).length]));
  for (const kind of channels) {
    const found = readAll(sent(kind));
    const named = countNamed(kind, RULES);
    const missing = Array.from({ length: named }, (__, index) => String(100_000 + index)).filter(
      (rule) => !found.has(rule),
    );
    expect([kind, missing]).toEqual([kind, []]);
  }

  await database.db.update(spikes).set({ closedAt: at(20) });
  await world.runAt(21, { routing: () => routeToAll(channels) });
  await deliver();
  const table = channels.map(
    (kind) => `| ${kind} | ${counted.get(kind)} | ${sent(kind).length - (counted.get(kind) ?? 0)} |`,
  );
  const docs = readFileSync(new URL("../../docs/channels.md", import.meta.url), "utf8");
  const documented = docs.split("\n").filter((line) => /^\| [a-z-]+ \| \d+ \| \d+ \|/.test(line));
  expect(documented.map((line) => line.split("|").slice(0, 4).join("|").concat("|"))).toEqual(table);
});
