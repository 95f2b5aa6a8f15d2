import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import type { Emulator } from "#emulator/emulator.ts";
import { openEmulator, TODAY } from "./support.ts";

/** A request with headers that fetch does not let anybody set; resolves with its status. */
function ask(emulator: Emulator, path: string, method: string, headers: Record<string, string>) {
  return new Promise<number>((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: emulator.port, path, method, headers }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    sent.on("error", reject).end(method === "POST" ? '{"errorResponse":"default"}' : "");
  });
}

test.each<[name: string, headers: (port: number) => Record<string, string>, status: number]>([
  ["the emulator's own address", (port) => ({ host: `127.0.0.1:${port}` }), 200],
  ["localhost", (port) => ({ host: `localhost:${port}` }), 200],
  ["an address of the loopback network", () => ({ host: "127.8.9.10" }), 200],
  ["the loopback address of IPv6", (port) => ({ host: `[::1]:${port}` }), 200],
  ["its own origin", (port) => ({ host: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}` }), 200],
  ["a host of a web page", () => ({ host: "rebound.example" }), 403],
  ["a host that begins like a loopback one", () => ({ host: "127.0.0.1.example" }), 403],
  ["a host that begins like localhost", () => ({ host: "localhost.example" }), 403],
  ["an address that is no loopback one", () => ({ host: "192.0.2.1:8090" }), 403],
  ["another origin", (port) => ({ host: `127.0.0.1:${port}`, origin: "https://attacker.example" }), 403],
  ["an origin of another port", (port) => ({ host: `127.0.0.1:${port}`, origin: "http://127.0.0.1:1" }), 403],
  ["an origin that is hidden", (port) => ({ host: `127.0.0.1:${port}`, origin: "null" }), 403],
])("the admin routes, asked by %s", async (_name, headersOf, status) => {
  const emulator = await openEmulator({ historyHours: 0 });
  const headers = headersOf(emulator.port);
  expect(await ask(emulator, "/_emulator", "GET", headers)).toBe(status);
  expect(await ask(emulator, "/_emulator/switches", "POST", headers)).toBe(status);
});

test("the platform's own routes take any host, as the platform behind a proxy does", async () => {
  const emulator = await openEmulator({ historyHours: 0 });
  const headers = { host: "api.example.test", accesskey: emulator.accessKey };
  expect(await ask(emulator, `/shield/event-logs/101/${TODAY}`, "GET", headers)).toBe(200);
});

test.each(["/_emulator", `/shield/event-logs/101/${TODAY}`, "/nothing"])(
  "two Host headers for %s are a bad request",
  async (path) => {
    const emulator = await openEmulator({ historyHours: 0 });
    const socket = connect(emulator.port, "127.0.0.1");
    const host = `Host: 127.0.0.1:${emulator.port}\r\n`;
    const key = `AccessKey: ${emulator.accessKey}\r\n`;
    socket.write(`GET ${path} HTTP/1.1\r\n${host}Host: other.example\r\n${key}Connection: close\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
  },
);
