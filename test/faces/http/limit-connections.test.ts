import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import type { HttpOptions } from "#faces/http/http.ts";
import type { ConnectionLimits } from "#faces/http/limits/limit-connections.ts";
import { scopesOf } from "#model/roles.ts";
import { startHttp } from "./start-http.ts";

const LIMITS: ConnectionLimits = {
  most: 30,
  reserved: 10,
  perAddress: 10,
  provingMs: 200,
  stallMs: 60_000,
  pipelined: 8,
};
const OPEN = { config: { access: "public" } } as const;
const LIVEZ = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
const KEYED = { config: { access: { scope: "read" } } } as const;

const caller = {
  keyId: "k",
  name: "k",
  roles: ["reader" as const],
  scopes: scopesOf(["reader"]),
  zoneIds: null,
  masked: false,
};

async function start(limits: Partial<ConnectionLimits> = {}, options: Partial<HttpOptions> = {}) {
  const release = Promise.withResolvers<void>();
  onTestFinished(() => release.resolve());
  let waiting = 0;
  const http = await startHttp(
    {
      connectionLimits: { ...LIMITS, ...limits },
      authenticate: async (key) => (key === "good" ? caller : null),
      ...options,
    },
    (app) => {
      app.get("/slow", OPEN, async () => {
        waiting++;
        await release.promise;
        return { done: true };
      });
      app.get("/mine", KEYED, async () => ({ mine: true }));
      app.get("/large", OPEN, async () => "x".repeat(50_000_000));
    },
  );
  const count = () => promisify(http.app.server.getConnections.bind(http.app.server))();
  return { ...http, count, waiting: () => waiting };
}

/** A connection from one of the addresses of this machine, and everything that comes over it. */
async function open(port: number, from = "127.0.0.1") {
  const socket = connect({ port, host: "127.0.0.1", localAddress: from });
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket
    .on("error", () => undefined)
    .on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  await once(socket, "connect");
  return { socket, read: () => text };
}

async function openMany(port: number, many: number, from: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let index = 0; index < many; index++) sockets.push((await open(port, from)).socket);
  return sockets;
}

async function askLivez(port: number, from: string): Promise<string> {
  const { socket, read } = await open(port, from);
  socket.write(LIVEZ);
  await vi.waitFor(() => expect(read()).toMatch(/^HTTP\/1.1 \d\d\d/));
  return read().slice(9, 12);
}

test("S4: an address that opens more connections loses those that were idle longest", async () => {
  const { port, count } = await start();
  const sockets = await openMany(port, 25, "127.0.0.2");
  await vi.waitFor(async () => expect(await count()).toBe(10));
  await vi.waitFor(() => {
    expect(sockets.map(({ closed }) => closed)).toEqual([...Array(15).fill(true), ...Array(10).fill(false)]);
  });
  expect(await askLivez(port, "127.0.0.3")).toBe("200");
});

test("S4: an address with all of its connections at work gets no other, and other addresses do", async () => {
  const { port, waiting } = await start();
  for (const socket of await openMany(port, 10, "127.0.0.2"))
    socket.write("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
  await vi.waitFor(() => expect(waiting()).toBe(10));
  const { socket } = await open(port, "127.0.0.2");
  if (!socket.closed) await once(socket, "close");
  expect(await askLivez(port, "127.0.0.3")).toBe("200");
});

test("S4: connections of many addresses without a key shut nobody out, whether they ask or send nothing", async () => {
  const { port, count } = await start({ perAddress: 5 });
  const known = await open(port, "127.0.0.1");
  known.socket.write("GET /mine HTTP/1.1\r\nhost: x\r\naccesskey: good\r\n\r\n");
  await vi.waitFor(() => expect(known.read()).toContain("200 OK"));
  for (let from = 2; from <= 20; from++) {
    const sockets = await openMany(port, 5, `127.0.0.${from}`);
    for (const socket of sockets.slice(0, 2)) socket.write(LIVEZ);
  }
  expect(await count()).toBeLessThanOrEqual(LIMITS.most);
  expect(await askLivez(port, "127.0.0.99")).toBe("200");
  expect(known.socket.closed).toBe(false);
});

test("S4: while every connection is at work, probes and keys still get reserved places, and others keep none", async () => {
  const { port, count, waiting } = await start();
  for (const from of ["127.0.0.2", "127.0.0.3"])
    for (const socket of await openMany(port, 10, from))
      socket.write("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
  await vi.waitFor(() => expect(waiting()).toBe(20));
  const silent = await openMany(port, 5, "127.0.0.4");
  expect(await askLivez(port, "127.0.0.5")).toBe("200");
  const known = await open(port, "127.0.0.6");
  known.socket.write("GET /mine HTTP/1.1\r\nhost: x\r\naccesskey: good\r\n\r\n");
  await vi.waitFor(() => expect(known.read()).toContain('{"mine":true}'));

  await vi.waitFor(() => expect(silent.every(({ closed }) => closed)).toBe(true));
  await vi.waitFor(async () => expect(await count()).toBe(21));
  expect(known.socket.closed).toBe(false);
});

test("S4: a connection that pipelines too many requests gets a few answers and the reason, and is closed", async () => {
  const { port, waiting } = await start();
  const { socket, read } = await open(port);
  socket.write(LIVEZ.repeat(500));
  await once(socket, "close");
  const answers = read().match(/HTTP\/1.1 \d\d\d/g) ?? [];
  expect(answers.at(-1)).toBe("HTTP/1.1 429");
  expect(answers.length).toBeLessThan(100);
  expect(waiting()).toBe(0);
});

test("S4: a connection of a trusted proxy is not counted against the proxy's address", async () => {
  const { port, count } = await start({}, { trustedProxies: ["127.0.0.0/8"] });
  await openMany(port, 15, "127.0.0.2");
  expect(await count()).toBe(15);
});

test("S4: a client that takes nothing of its answer is hung up on, and one that is waited for is not", async () => {
  const { port, count, waiting } = await start({ stallMs: 1_000 });
  const working = await open(port);
  working.socket.write("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
  await vi.waitFor(() => expect(waiting()).toBe(1));
  const stalled = connect({ port, host: "127.0.0.1" });
  onTestFinished(() => void stalled.destroy());
  stalled.on("error", () => undefined).pause();
  stalled.write("GET /large HTTP/1.1\r\nhost: x\r\n\r\n");
  await vi.waitFor(async () => expect(await count()).toBe(2));
  await vi.waitFor(async () => expect(await count()).toBe(1), { timeout: 30_000 });
  expect(working.socket.closed).toBe(false);
});
