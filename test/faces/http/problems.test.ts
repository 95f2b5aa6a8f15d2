import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import { closeHttp } from "#app/open-http.ts";
import type { Access } from "#faces/http/keys/guard.ts";
import { startHttp } from "./start-http.ts";

const OPEN: { config: { access: Access } } = { config: { access: "public" } };

const HEADERS = {
  "content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/** Writes bytes to the bare socket and reads until the server hangs up. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(bytes);
  return text(socket);
}

async function problemOf(response: Response) {
  expect(response.headers.get("content-type")).toBe("application/problem+json; charset=utf-8");
  expect(Object.fromEntries(response.headers)).toMatchObject(HEADERS);
  return (await response.json()) as Record<string, unknown>;
}

test("an unknown address is a problem that names the request", async () => {
  const { url } = await startHttp();
  const response = await fetch(`${url}/nothing?q=<script>`);

  expect(response.status).toBe(404);
  expect(await problemOf(response)).toEqual({
    type: "urn:longwatch:problem:not-found",
    title: "Not Found",
    status: 404,
    requestId: response.headers.get("x-request-id"),
  });
});

test("an answer that is not a problem carries the same headers", async () => {
  const { url } = await startHttp();
  const response = await fetch(`${url}/livez`);

  expect(Object.fromEntries(response.headers)).toMatchObject(HEADERS);
});

test("an address that cannot be decoded is a bad request", async () => {
  const { url } = await startHttp();
  const response = await fetch(`${url}/%zz`);

  expect(response.status).toBe(400);
  expect(await problemOf(response)).toMatchObject({ type: "urn:longwatch:problem:bad-request", status: 400 });
});

test("F70: an error shows no stack, no SQL and no address; the log has all of it under the same id", async () => {
  const { url, lines } = await startHttp({}, (app) =>
    app.get("/fails", OPEN, () => {
      throw Object.assign(new Error("select * from canary at 10.0.0.1"), {
        code: "42P01",
        statusCode: 400_000,
      });
    }),
  );
  const response = await fetch(`${url}/fails`);
  const problem = await problemOf(response);

  expect(problem).toEqual({
    type: "urn:longwatch:problem:internal-server-error",
    title: "Internal Server Error",
    status: 500,
    requestId: expect.any(String),
  });
  expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual(
    expect.objectContaining({
      msg: "request failed",
      route: "/fails",
      requestId: problem["requestId"],
      error: expect.objectContaining({ code: "42P01", message: "select * from canary at 10.0.0.1" }),
    }),
  );
});

test("a request that a stop cuts off is not logged as failed, and every other failure is", async () => {
  const [entered, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const handled = Promise.withResolvers<void>();
  const { app, url, lines } = await startHttp({}, (routes) => {
    routes.addHook("onError", async ({ url: path }) => {
      if (path === "/slow") setImmediate(() => handled.resolve());
    });
    routes.get("/slow", OPEN, async () => {
      entered.resolve();
      await released.promise;
      throw new Error("Cannot use a pool after calling end on the pool");
    });
    routes.get("/fails", OPEN, async () => {
      throw new Error("broken");
    });
  });
  await fetch(`${url}/fails`);
  const asked = fetch(`${url}/slow`).catch(() => "cut off");
  await entered.promise;
  await closeHttp(app, 0);
  expect(await asked).toBe("cut off");
  released.resolve();
  await handled.promise;

  const failed = lines.filter((line) => line.includes("request failed"));
  expect(failed).toHaveLength(1);
  expect(failed[0]).toContain("/fails");
});

test("an error with a client's status still shows only its title", async () => {
  const { url } = await startHttp({}, (app) =>
    app.get("/fails", OPEN, () => {
      throw Object.assign(new Error("canary"), { statusCode: 409 });
    }),
  );
  const problem = await problemOf(await fetch(`${url}/fails`));

  expect(problem).toMatchObject({ type: "urn:longwatch:problem:conflict", status: 409 });
  expect(JSON.stringify(problem)).not.toContain("canary");
});

test.each([
  { body: `"${"x".repeat(1_000)}"`, type: "application/json", status: 413 },
  { body: "{", type: "application/json", status: 400 },
  { body: '{"__proto__":1}', type: "application/json", status: 400 },
  { body: "<x/>", type: "text/xml", status: 415 },
])("a body of $type that cannot be taken is refused with $status", async ({ body, type, status }) => {
  const { url } = await startHttp({ bodyLimitBytes: 100 }, (app) => app.post("/take", OPEN, () => ({})));
  const response = await fetch(`${url}/take`, { method: "POST", body, headers: { "content-type": type } });

  expect(response.status).toBe(status);
  expect(await problemOf(response)).toMatchObject({ status, detail: expect.any(String) });
});

test("a compressed body is refused with 415, which says what to do", async () => {
  const { url } = await startHttp({}, (app) => app.post("/take", OPEN, () => ({})));
  const send = (encoding: string) =>
    fetch(`${url}/take`, {
      method: "POST",
      body: encoding === "gzip" ? gzipSync("{}") : "{}",
      headers: { "content-type": "application/json", "content-encoding": encoding },
    });
  const refused = await send("gzip");

  expect(refused.status).toBe(415);
  expect(await problemOf(refused)).toMatchObject({
    status: 415,
    detail: "The request body has a content encoding. Send the body without one.",
  });
  expect((await send("identity")).status).toBe(200);
});

test.each(["/livez", "/nothing"])("two Host headers for %s are a bad request", async (path) => {
  const { port } = await startHttp();
  const head = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`;
  const refused = await exchange(port, `${head}Host: other.example\r\nConnection: close\r\n\r\n`);
  const same = await exchange(port, `${head}Host: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);

  expect(refused).toMatch(/^HTTP\/1\.1 400 /);
  expect(refused).toContain("The request has more than one Host header.");
  expect(same).toMatch(/^HTTP\/1\.1 400 /);
  expect(await exchange(port, `${head}Connection: close\r\n\r\n`)).not.toMatch(/^HTTP\/1\.1 400 /);
});

test("a handler that hangs is answered for in time", async () => {
  const { url } = await startHttp({ handlerTimeoutMs: 30 }, (app) =>
    app.get("/hangs", OPEN, () => new Promise<never>(() => {})),
  );
  const response = await fetch(`${url}/hangs`);

  expect(response.status).toBe(503);
  expect(await problemOf(response)).toMatchObject({ type: "urn:longwatch:problem:service-unavailable" });
});

test.each([
  { name: "no HTTP", bytes: "hello\r\n\r\n", status: 400 },
  {
    name: "a header of 100 KB",
    bytes: `GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(100_000)}\r\n\r\n`,
    status: 431,
  },
])("$name is refused with $status on the bare socket", async ({ bytes, status }) => {
  const { port } = await startHttp();
  const answer = await exchange(port, bytes);

  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} .*application/problem\\+json`, "s"));
  expect(answer).toContain("x-content-type-options: nosniff");
});

test("a request that is never finished is hung up on", async () => {
  const { port } = await startHttp({ requestTimeoutMs: 100 });

  expect(await exchange(port, "POST /take HTTP/1.1\r\nhost: x\r\ncontent-le")).toMatch(/^HTTP\/1.1 408 /);
});

test("a client that never ends its own side cannot keep a refused connection open", async () => {
  const { app, port } = await startHttp({ requestTimeoutMs: 100 });
  const sockets = Array.from({ length: 20 }, () => connect({ port, host: "127.0.0.1", allowHalfOpen: true }));
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  // The client reads nothing, so it does not notice the server's end either.
  for (const socket of sockets)
    socket.on("error", () => undefined).write("GET /livez HTTP/1.1\r\nhost: x\r\n");
  const count = () => promisify(app.server.getConnections.bind(app.server))();
  await vi.waitFor(async () => expect(await count()).toBe(20));

  await vi.waitFor(async () => expect(await count()).toBe(0), { timeout: 10_000 });
});

test("a flood of connections leaves files for the databases", async () => {
  const { app } = await startHttp();

  expect(app.server.maxConnections).toBe(1_000);
});

test("closing lets a request in flight end", async () => {
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { app, url } = await startHttp({}, (app) =>
    app.get("/slow", OPEN, async () => {
      arrived.resolve();
      await release.promise;
      return { done: true };
    }),
  );
  const answer = fetch(`${url}/slow`);
  await arrived.promise;
  const closed = app.close();
  release.resolve();

  expect(await (await answer).json()).toEqual({ done: true });
  await closed;
});
