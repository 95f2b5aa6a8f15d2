import { existsSync, globSync } from "node:fs";
import { inspect } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import type { NetworkPolicy } from "#delivery/receivers/endpoint.ts";
import { syslog } from "#delivery/receivers/sinks/syslog.ts";
import { createSecret } from "#lib/secret.ts";
import {
  findRsyslog,
  parseMessage,
  startRsyslog,
  startSyslogServer,
} from "../../support/receivers/syslog-server.ts";
import { failureOf, scriptedLookup } from "../support/receiver.ts";
import { createSelfSigned } from "../support/self-signed.ts";
import { CANARY, eventOf, eventsOf, idsOf, sending, ZONE } from "./world.ts";

const own = createSelfSigned("localhost");
const client = createSelfSigned("client.example");
const STORED = { refused: [], postponed: [], waitMs: null };

interface Over {
  readonly port?: number;
  readonly host?: string;
  readonly transport?: "tls" | "tcp";
  readonly maxMessageBytes?: number;
  readonly clientCertificate?: string;
  readonly timeoutMs?: number;
  readonly network?: NetworkPolicy;
}

function openAt({ clientCertificate, network, ...over }: Over) {
  return syslog.open({
    name: "siem",
    host: "localhost",
    port: 6_514,
    transport: "tls",
    facility: 16,
    maxMessageBytes: 8_192,
    clock: Date.now,
    network: { allowPrivateNetworks: true, ca: own.cert, ...network },
    ...(clientCertificate === undefined ? {} : { clientCertificate: createSecret(clientCertificate) }),
    ...over,
  });
}

async function start(over: Over = {}) {
  const server = await startSyslogServer(over.transport === "tcp" ? null : own);
  onTestFinished(() => server.stop());
  return { server, sink: openAt({ port: server.port, ...over }) };
}

const idsIn = ({ messages }: { messages: readonly { params: Readonly<Record<string, string>> }[] }) =>
  messages.map(({ params }) => params["id"]);

test.each(["tls", "tcp"] as const)("500 events arrive over %s in one connection", async (transport) => {
  const { server, sink } = await start({ transport });
  const events = eventsOf(500);
  expect(await sink.send(events, sending())).toEqual(STORED);
  expect(idsIn(server)).toEqual(idsOf(events));
  expect(server.connections()).toBe(1);
  expect(server.messages[7]).toEqual({
    priority: 16 * 8 + 5,
    time: "2026-11-21T14:00:01.234Z",
    params: { id: `${ZONE}-e7`, zone: String(ZONE), rule: "", action: "" },
    text: JSON.stringify({ id: `${ZONE}-e7` }),
  });
});

test("no text of a visitor ends a value, a message or a line, and the event is the same", async () => {
  const { server, sink } = await start({ transport: "tcp" });
  const hostile = '"] [x y="\\]\r\n<0>1 - - \u0000\u001b[2J\u2028\u0085\u202e😀\ud800é';
  const events = [
    eventOf("a", { hostile }, { fields: { ruleId: hostile, action: "block" } }),
    { ...eventOf("b"), body: '{\n\t"id": "b",\r\n "text": "é" }\n' },
  ];
  expect(await sink.send(events, sending())).toEqual(STORED);
  const [first, second] = server.messages;
  expect(JSON.parse(first?.text ?? "")).toMatchObject({ hostile });
  expect(JSON.parse(second?.text ?? "")).toEqual({ id: "b", text: "é" });
  expect(`${first?.text}${second?.text}`).toMatch(/^[\x20-\x7e]+$/);
  expect(first?.params["rule"]).toBe(
    '"] [x y="\\]\\u000d\\u000a<0>1 - - \\u0000\\u001b[2J\\u2028\\u0085\\u202e😀\\ud800é',
  );
});

test("an event above max_message_bytes is refused, and the others arrive", async () => {
  const { server, sink } = await start({ transport: "tcp" });
  const events = [eventOf("a"), eventOf("big", { text: "é".repeat(1_500) }), eventOf("b")];
  expect(await sink.send(events, sending())).toMatchObject({
    refused: [{ index: 1, reason: expect.stringContaining("at most 8192 are sent") }],
  });
  expect(idsIn(server)).toEqual([`${ZONE}-a`, `${ZONE}-b`]);
});

test("after a broken connection only the events of that connection and of later ones are sent again", async () => {
  const { server, sink } = await start({ transport: "tcp", maxMessageBytes: 500_000 });
  server.manners.push("read", "reset");
  const events = Array.from({ length: 6 }, (_, at) => eventOf(`e${at}`, { text: "x".repeat(400_000) }));
  const answer = await sink.send(events, sending());
  expect(answer).toMatchObject({ refused: [], postponed: [2, 3, 4, 5] });
  expect(idsIn(server)).toEqual(idsOf(events.slice(0, 2)));
  expect(await sink.send(events.slice(2), sending())).toEqual(STORED);
  expect(idsIn(server)).toEqual(idsOf(events));
});

test.each(
  [1, 3_000].flatMap((count) => [
    ["refuse", "tls", count] as const,
    ["refuse", "tcp", count] as const,
    ["reset", "tcp", count] as const,
    ["close-early", "tls", count] as const,
    ["close-early", "tcp", count] as const,
    ["close-late", "tls", count] as const,
    ["close-late", "tcp", count] as const,
  ]),
)("a server that does %s over %s acknowledges none of %i events", async (manner, transport, count) => {
  const { server, sink } = await start({ transport });
  server.manners.push(manner);
  expect(await failureOf(sink.send(eventsOf(count), sending()))).toMatchObject({
    code: "ENDPOINT_UNREACHABLE",
    disposition: "retry",
    message: expect.stringContaining(`localhost:${server.port} closed the connection before`),
  });
  expect(await sink.send(eventsOf(count), sending())).toEqual(STORED);
});

test("a server that does not close the connection acknowledges nothing", async () => {
  const { server, sink } = await start({ timeoutMs: 1_600 });
  server.manners.push("stay");
  expect(await failureOf(sink.send(eventsOf(1), sending()))).toMatchObject({ code: "ENDPOINT_TIMEOUT" });
});

test("an aborted attempt ends with the signal's reason", async () => {
  const { server, sink } = await start();
  server.manners.push("stay");
  const controller = new AbortController();
  const reason = new Error("the service stops");
  const sent = sink.send(eventsOf(1), sending({ signal: controller.signal }));
  await vi.waitFor(() => expect(server.messages).toHaveLength(1));
  controller.abort(reason);
  await expect(sent).rejects.toBe(reason);
});

test("a server that no authority vouches for, or that is another one, gets nothing", async () => {
  const { server } = await start();
  const ca = createSelfSigned("localhost").cert;
  const untrusted = openAt({ port: server.port, network: { ca } });
  expect(await failureOf(untrusted.send(eventsOf(1), sending()))).toMatchObject({
    message: expect.stringContaining("name the file of its authority in ca_file"),
  });
  const other = openAt({ port: server.port, host: "127.0.0.1" });
  expect(await failureOf(other.send(eventsOf(1), sending()))).toMatchObject({
    message: expect.stringContaining("use a name in its address that the certificate is for"),
  });
  expect(server.messages).toEqual([]);
});

test("a name that resolves to an address inside is refused before a connection", async () => {
  const network = { allowPrivateNetworks: false, lookup: scriptedLookup(["169.254.169.254"]) };
  const sink = openAt({ host: "syslog.example", network });
  expect(await failureOf(sink.send(eventsOf(1), sending()))).toMatchObject({ code: "ADDRESS_REFUSED" });
});

test("every mistake is named at once, and no secret is shown", () => {
  const network = { allowPrivateNetworks: false };
  const open = () => openAt({ host: "10.0.0.7", transport: "tcp", clientCertificate: CANARY, network });
  expect(open).toThrow(
    /host: 10\.0\.0\.7 is not a public address \(private\)\n.*client_certificate: must hold a certificate and its private key in PEM\n.*transport: tcp is allowed only if private addresses are allowed/s,
  );
  expect(inspect(createSecret(client.key))).not.toContain("PRIVATE");
});

const rsyslog = findRsyslog();
const hasTls = globSync("/usr/lib/**/rsyslog/lmnsd_gtls.so").some((file) => existsSync(file));
const real = rsyslog === null || !hasTls ? test.skip : test;
const why = rsyslog === null || !hasTls ? " (skipped: rsyslog with its module for TLS is not installed)" : "";

real(`a real rsyslog stores every event over TLS, and none of a client that it refuses${why}`, async () => {
  const server = await startRsyslog(rsyslog ?? "", { ...own, ca: client.cert });
  onTestFinished(() => server.stop());
  const stranger = openAt({ port: server.port });
  for (const count of [1, 3_000])
    expect(await failureOf(stranger.send(eventsOf(count), sending()))).toMatchObject({
      message: expect.stringContaining("refuses this client (client_certificate)"),
    });
  expect(server.lines()).toEqual([]);
  const sink = openAt({ port: server.port, clientCertificate: `${client.cert}${client.key}` });
  const hostile = '"]\\\n\u2028é';
  const events = [eventOf("a", { hostile }, { fields: { ruleId: hostile } }), ...eventsOf(3_000)];
  expect(await sink.send(events, sending())).toEqual(STORED);
  await vi.waitFor(() => expect(server.lines()).toHaveLength(3_001), { timeout: 10_000 });
  const messages = server.lines().map(parseMessage);
  expect(messages.map(({ params }) => params["id"])).toEqual(idsOf(events));
  expect(JSON.parse(messages[0]?.text ?? "")).toMatchObject({ hostile });
});
