import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import zlib from "node:zlib";
import { describe, expect } from "vitest";
import { parseJson } from "#lib/json.ts";
import { failure, lastHour, listPage, openEdge, test, today } from "./support/edge-test.ts";
import { createSignal } from "./support/signal.ts";

/** Writes a byte every few milliseconds until the client goes away; resolves when it did. */
function drip(status = 200) {
  const gone = createSignal();
  const handler = (response: ServerResponse) => {
    response.writeHead(status, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 5);
    response.on("close", () => {
      clearInterval(timer);
      gone.give();
    });
  };
  return { handler, gone: gone.given };
}

describe("the total deadline", () => {
  test("ends a slow drip that never goes silent, and closes its connection", async ({ platform, open }) => {
    const { handler, gone } = drip();
    platform.handle(handler);
    const thrown = await failure(open({ timeoutMs: 150 }).client.listEventLogs(today));
    expect(thrown).toMatchObject({ code: "EDGE_TIMEOUT", disposition: "retry" });
    await gone;
    expect(platform.requests).toHaveLength(1);
  });

  test("ends a slow drip of an error body as well", async ({ platform, open }) => {
    const { handler, gone } = drip(500);
    platform.handle(handler);
    expect(await failure(open({ timeoutMs: 150 }).client.listEventLogs(today))).toMatchObject({
      code: "EDGE_TIMEOUT",
    });
    await gone;
  });

  test("covers the wait for headers", async ({ platform, open }) => {
    platform.handle(() => {});
    expect(await failure(open({ timeoutMs: 100 }).client.listEventLogs(today))).toMatchObject({
      code: "EDGE_TIMEOUT",
    });
  });

  test("covers the pauses between attempts", async ({ platform, open }) => {
    platform.reply(500);
    const sleep = (_ms: number, signal: AbortSignal) =>
      new Promise<void>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error)),
      );
    const thrown = await failure(
      open({ timeoutMs: 200, random: () => 0.1, sleep }).client.listEventLogs(today),
    );
    expect(thrown).toMatchObject({ code: "EDGE_TIMEOUT" });
    expect(platform.requests).toHaveLength(1);
  });

  test("leaves a write whose fate is unknown to a person", async ({ platform, open }) => {
    platform.handle(() => {});
    const call = open({ timeoutMs: 100 }).client.setHostnameKeyType({
      pullZoneId: 1,
      request: { Hostname: "a", KeyType: 0 },
    });
    expect(await failure(call)).toMatchObject({ code: "EDGE_TIMEOUT", disposition: "give-up" });
  });
});

describe("the caller's signal", () => {
  test("ends a call with the caller's own reason and without a retry", async ({ platform, edge }) => {
    const controller = new AbortController();
    platform.handle(() => controller.abort(new Error("shutting down")));
    await expect(edge.client.listEventLogs(today, controller.signal)).rejects.toThrow("shutting down");
    expect(platform.requests).toHaveLength(1);
  });

  test("that is already aborted sends nothing", async ({ platform, edge }) => {
    await expect(edge.client.listEventLogs(today, AbortSignal.abort(new Error("too late")))).rejects.toThrow(
      "too late",
    );
    expect(platform.requests).toHaveLength(0);
  });

  test("close ends what is in flight", async ({ platform, edge }) => {
    platform.handle(() => void edge.transport.close());
    expect(await failure(edge.client.listEventLogs(today))).toMatchObject({ code: "EDGE_NETWORK" });
    expect(edge.attempts).toHaveLength(1);
    expect(platform.requests).toHaveLength(1);
  });
});

describe("damaged answers", () => {
  test("truncated JSON is repeated and then malformed", async ({ platform, edge }) => {
    for (let count = 0; count < 4; count++) platform.reply(200, '{"logs":[{"logId":"a","timest');
    const thrown = await failure(edge.client.listEventLogs(today));
    expect(thrown).toMatchObject({ code: "EDGE_MALFORMED", disposition: "retry", status: 200 });
    expect(platform.requests).toHaveLength(4);
  });

  test("an answer cut before its promised length is repeated", async ({ platform, edge }) => {
    platform.handle((response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write('{"logs":[', () => response.destroy());
    });
    platform.reply(200, listPage());
    expect((await edge.client.listEventLogs(today)).page.logs).toEqual([]);
  });

  test.for([
    { when: "an HTML page with 200", body: "<!doctype html><title>Hello</title>", says: "HTML page" },
    { when: "an empty body with 200", body: "", says: "empty" },
    { when: "plain text with 200", body: "hello", says: "not complete JSON" },
    { when: "JSON of another shape", body: "{}", says: "another shape" },
    { when: "a JSON array", body: "[]", says: "another shape" },
    { when: "JSON null", body: "null", says: "another shape" },
    { when: "a list that is no list", body: '{"logs":{},"hasMoreData":false}', says: "logs" },
  ])("$when is malformed, not an empty day", async ({ body, says }, { platform, open }) => {
    platform.reply(200, body);
    const thrown = await failure(open({ maxAttempts: 1 }).client.listEventLogs(today));
    expect(thrown).toMatchObject({ code: "EDGE_MALFORMED", disposition: "retry" });
    expect(thrown.message).toContain(says);
  });

  test("an HTML page in answer to a write is not taken for a success", async ({ platform, edge }) => {
    platform.reply(200, "<html>login</html>");
    const call = edge.client.setHostnameKeyType({ pullZoneId: 1, request: { Hostname: "a", KeyType: 0 } });
    expect(await failure(call)).toMatchObject({ code: "EDGE_MALFORMED", disposition: "give-up" });
  });

  test("a server without HTTP is a network error", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {}).once("data", () => socket.end("SSH-2.0-nope\r\n"));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const edge = openEdge(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(await failure(edge.client.listEventLogs(today))).toMatchObject({ code: "EDGE_NETWORK" });
    expect(sockets).toHaveLength(4);
    await edge.transport.close();
    server.close();
  });
});

describe("body size", () => {
  test("a plain body over the cap is refused, and not asked for again", async ({ platform, open }) => {
    platform.reply(200, listPage({ logs: [], pad: "x".repeat(5_000) }));
    const thrown = await failure(open({ maxBodyBytes: 1_000 }).client.listEventLogs(today));
    expect(thrown).toMatchObject({ code: "EDGE_BODY_TOO_LARGE", disposition: "give-up" });
    expect(platform.requests).toHaveLength(1);
  });

  test.for(["gzip", "br", "zstd"] as const)(
    "a %s bomb is refused while it is being unpacked",
    async (encoding, { platform, open }) => {
      const bomb = Buffer.alloc(64 * 1_024 * 1_024, " ");
      const packed = {
        gzip: zlib.gzipSync(bomb, { level: 1 }),
        br: zlib.brotliCompressSync(bomb, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
        zstd: zlib.zstdCompressSync(bomb),
      }[encoding];
      expect(packed.length).toBeLessThan(600_000);
      platform.reply(200, packed, { "content-encoding": encoding });
      const thrown = await failure(open({ maxBodyBytes: 1_000_000 }).client.listEventLogs(today));
      expect(thrown.code).toBe("EDGE_BODY_TOO_LARGE");
    },
  );

  test("only the beginning of a compressed bomb in an error body is read, and the status decides", async ({
    platform,
    edge,
  }) => {
    platform.reply(404, zlib.gzipSync(Buffer.alloc(32 * 1_024 * 1_024, "x")), { "content-encoding": "gzip" });
    expect(await failure(edge.client.listEventLogs(today))).toMatchObject({
      code: "EDGE_NOT_FOUND",
      status: 404,
    });
  });
});

describe("content encoding", () => {
  const page = listPage({ logs: [{ logId: "a", timestamp: 1 }] });
  const json = Buffer.from(JSON.stringify(page));

  test.for([
    { encoding: "gzip", body: zlib.gzipSync(json) },
    { encoding: "br", body: zlib.brotliCompressSync(json) },
    { encoding: "zstd", body: zlib.zstdCompressSync(json) },
    { encoding: "deflate", body: zlib.deflateSync(json) },
    { encoding: "gzip, br", body: zlib.brotliCompressSync(zlib.gzipSync(json)) },
    { encoding: "identity", body: json },
  ])(
    "$encoding is undone and the raw bytes are the page's own",
    async ({ encoding, body }, { platform, edge }) => {
      platform.reply(200, body, { "content-encoding": encoding });
      const result = await edge.client.listEventLogs(today);
      expect(result.body.equals(json)).toBe(true);
      expect(result.page.logs).toHaveLength(1);
    },
  );

  test.for([
    { when: "cut in the middle", body: zlib.gzipSync(json).subarray(0, 30) },
    { when: "not gzip at all", body: json },
  ])("gzip that is $when is malformed and repeated", async ({ body }, { platform, edge }) => {
    platform.reply(200, body, { "content-encoding": "gzip" });
    platform.reply(200, page);
    await edge.client.listEventLogs(today);
    expect(edge.attempts[0]).toMatchObject({ code: "EDGE_MALFORMED" });
  });

  test("an unknown encoding is malformed", async ({ platform, open }) => {
    platform.reply(200, json, { "content-encoding": "rot13" });
    expect(await failure(open({ maxAttempts: 1 }).client.listEventLogs(today))).toMatchObject({
      code: "EDGE_MALFORMED",
    });
  });
});

test("an integer beyond 2^53 keeps its digits, and a byte order mark is skipped", async ({
  platform,
  edge,
}) => {
  const body = `\ufeff{"logs":[{"logId":9007199254740993,"timestamp":1,"big":[12345678901234567890, -1e300]}],"hasMoreData":false}`;
  platform.reply(200, body);
  const { page } = await edge.client.listEventLogs(today);
  expect(page.logs).toEqual([
    { logId: "9007199254740993", timestamp: 1, big: ["12345678901234567890", -1e300] },
  ]);
});

test.for([
  ["a text that ends in a backslash", '["a\\\\", 12345678901234567890]', ["a\\", "12345678901234567890"]],
  ["digits in a text", '["\\"12345678901234567890", 1]', ['"12345678901234567890', 1]],
  [
    "a fraction and a power",
    "[1.12345678901234567890, 12345678901234567890e2]",
    [Number("1.12345678901234567890"), Number("12345678901234567890e2")],
  ],
  ["a negative one", '{"a":-9007199254740993}', { a: "-9007199254740993" }],
  ["the last exact one", '{"a":9007199254740991}', { a: 9_007_199_254_740_991 }],
  ["leading zeros", "[012345678901234567890]", undefined],
  ["two numbers without a comma", "[12345678901234567890 12345678901234567890]", undefined],
  ["a text without an end", '["12345678901234567890', undefined],
] as const)("an integer beyond 2^53 differs from %s", ([, text, value]) => {
  expect(parseJson(text)).toEqual(value);
});

test("the pool opens no more sockets than it was given", async ({ platform, open }) => {
  const ports = new Set<number | undefined>();
  for (let count = 0; count < 12; count++) {
    platform.handle((response) => {
      ports.add(response.socket?.remotePort);
      response.end(JSON.stringify({ rows: [], total: 0 }));
    });
  }
  const { client } = open({ connections: 2 });
  await Promise.all([...Array(12)].map(() => client.searchEventLogs(lastHour)));
  expect(ports.size).toBeLessThanOrEqual(2);
});
