import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, createGunzip, gunzipSync, zstdDecompressSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { expect, test } from "vitest";
import { chooseEncoding } from "#faces/http/compress.ts";
import { startHttp } from "./start-http.ts";

const LONG = JSON.stringify({ rows: Array.from({ length: 500 }, (_, id) => ({ id, url: `/page/${id}` })) });
const DECODE = { zstd: zstdDecompressSync, br: brotliDecompressSync, gzip: gunzipSync };
const access = { config: { access: "public" } } as const;

/** Sends the request as it is: `fetch` adds an encoding and decodes the answer. */
async function send(url: string, headers: Record<string, string> = {}, method = "GET") {
  const asked = request(url, { method, headers, agent: false }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return answer;
}

async function ask(...given: Parameters<typeof send>) {
  const answer = await send(...given);
  return { status: answer.statusCode, headers: answer.headers, body: await buffer(answer) };
}

const start = (extend: (app: FastifyInstance) => void) => startHttp({ routes: [extend] });

const startLong = () =>
  start((app) =>
    app.get("/long", access, async (_request, reply) => reply.type("application/json").send(LONG)),
  );

test.each([
  [undefined, "identity"],
  ["", "identity"],
  ["gzip", "gzip"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip, deflate, br", "br"],
  ["deflate", "identity"],
  ["gzip;q=0.5, br;q=0.1", "gzip"],
  ["GZIP ; Q=0.5", "gzip"],
  ["gzip;q=1.2.3", "gzip"],
  ["zstd;q=0, *", "br"],
  ["*;q=0.1, gzip;q=0.2", "gzip"],
  ["identity, gzip;q=0.5", "identity"],
  ["gzip;q=0", "identity"],
  ["identity;q=0, gzip;q=0.001", "gzip"],
  ["identity;q=0", null],
  ["*;q=0", null],
  ["*;q=0, identity;q=0.1", "identity"],
])("the encoding for Accept-Encoding %j is %j", (header, encoding) => {
  expect(chooseEncoding(header)).toBe(encoding);
});

test.each(["zstd", "br", "gzip"] as const)(
  "a long answer in %s is a fifth or less, and decodes to the same",
  async (encoding) => {
    const { url } = await startLong();
    const { status, headers, body } = await ask(`${url}/long`, { "accept-encoding": encoding });
    expect([status, headers["content-encoding"], headers.vary]).toEqual([200, encoding, "accept-encoding"]);
    expect(Number(headers["content-length"])).toBe(body.length);
    expect(body.length).toBeLessThan(LONG.length / 5);
    expect(DECODE[encoding](body).toString()).toBe(LONG);
    const head = await ask(`${url}/long`, { "accept-encoding": encoding }, "HEAD");
    expect([head.headers["content-encoding"], head.headers["content-length"]]).toEqual([
      encoding,
      String(body.length),
    ]);
  },
);

test("an answer varies with the encoding also where it is not compressed, and beside what else it varies with", async () => {
  const { url } = await start((app) => {
    app.get("/plain", access, async () => "short");
    app.get("/varied", access, async (_request, reply) => reply.header("vary", "accept").send(LONG));
  });
  const plain = await ask(`${url}/plain`, { "accept-encoding": "gzip" });
  expect([plain.headers.vary, plain.headers["content-encoding"], plain.body.toString()]).toEqual([
    "accept-encoding",
    undefined,
    "short",
  ]);
  const varied = await ask(`${url}/varied`);
  expect([varied.headers.vary, varied.headers["content-encoding"]]).toEqual([
    "accept, accept-encoding",
    undefined,
  ]);
});

test("a client that refuses identity gets a short answer compressed, and 406 without another encoding", async () => {
  const { url } = await start((app) => app.get("/plain", access, async () => "short"));
  const { headers, body } = await ask(`${url}/plain`, { "accept-encoding": "br, identity;q=0" });
  expect([headers["content-encoding"], brotliDecompressSync(body).toString()]).toEqual(["br", "short"]);
  const refused = await ask(`${url}/plain`, { "accept-encoding": "deflate, identity;q=0" });
  expect([refused.status, JSON.parse(refused.body.toString())]).toMatchObject([
    406,
    { detail: "The header Accept-Encoding accepts neither zstd, br, gzip nor identity." },
  ]);
});

test.each([
  ["is encoded already", { "content-type": "text/plain", "content-encoding": "br" }],
  ["may not be transformed", { "content-type": "text/plain", "cache-control": "no-store, no-transform" }],
  ["is a part", { "content-type": "text/plain", "content-range": "bytes 0-9/20" }],
  ["is served in parts on request", { "content-type": "text/plain", "accept-ranges": "bytes" }],
  ["is a stream of events", { "content-type": "text/event-stream" }],
  ["is Parquet", { "content-type": "application/vnd.apache.parquet" }],
  ["has no type", {}],
])("an answer that %s is sent as it is", async (_, headers) => {
  const { url } = await start((app) => {
    app.get("/as-it-is", access, async (_request, reply) => reply.headers(headers).send(Buffer.from(LONG)));
  });
  const { headers: sent, body } = await ask(`${url}/as-it-is`, { "accept-encoding": "gzip" });
  expect([sent["content-encoding"], body.toString()]).toEqual([
    "content-encoding" in headers ? headers["content-encoding"] : undefined,
    LONG,
  ]);
});

test.each(["/session/long", "/api/v1/keys", "/api/v1/keys/long"])(
  "the answer of %s is sent as it is, because it can hold a secret beside input",
  async (path) => {
    const { url } = await start((app) =>
      app.get(path, access, async (_request, reply) => reply.type("application/json").send(LONG)),
    );
    const { headers, body } = await ask(url + path, { "accept-encoding": "gzip" });
    expect([headers["content-encoding"], body.toString()]).toEqual([undefined, LONG]);
  },
);

test("each chunk of a stream can be decoded before the next one is made", async () => {
  const first = Promise.withResolvers<void>();
  const { url } = await start((app) =>
    app.get("/rows", access, async (_request, reply) => {
      async function* rows() {
        yield "first\n";
        await first.promise;
        yield "second\n";
      }
      return reply.type("text/csv; charset=utf-8").send(Readable.from(rows(), { objectMode: false }));
    }),
  );
  const answer = await send(`${url}/rows`, { "accept-encoding": "gzip" });
  expect([answer.headers["content-encoding"], answer.headers["content-length"]]).toEqual(["gzip", undefined]);
  const decoded = answer.pipe(createGunzip()).setEncoding("utf8");
  const [text] = (await once(decoded, "data")) as [string];
  expect(text).toBe("first\n");
  first.resolve();
  expect(((await once(decoded, "data")) as [string])[0]).toBe("second\n");
});

test("a client that leaves ends the source of a compressed stream", async () => {
  const ended = Promise.withResolvers<string>();
  const { url } = await start((app) => {
    app.get("/endless", access, async (_request, reply) => {
      async function* rows() {
        try {
          for (;;) yield Buffer.alloc(10_000, "row ");
        } finally {
          ended.resolve("ended");
        }
      }
      return reply.type("text/csv").send(Readable.from(rows(), { objectMode: false }));
    });
  });
  const answer = await send(`${url}/endless`, { "accept-encoding": "zstd" });
  await once(answer, "data");
  answer.destroy();
  expect(await ended.promise).toBe("ended");
});

test("a source that fails cuts its compressed stream, and is a whole problem if nothing was sent", async () => {
  const received = Promise.withResolvers<void>();
  const { url } = await start((app) => {
    for (const [path, first] of [
      ["/early", ""],
      ["/late", "first\n"],
    ] as const)
      app.get(path, access, async (_request, reply) => {
        async function* rows() {
          if (first !== "") yield first;
          if (first !== "") await received.promise;
          throw new Error("the disk is gone");
        }
        return reply.type("text/csv").send(Readable.from(rows(), { objectMode: false }));
      });
  });
  const { status, headers, body } = await ask(`${url}/early`, { "accept-encoding": "zstd" });
  expect([status, headers["content-encoding"], JSON.parse(body.toString())]).toMatchObject([
    500,
    undefined,
    { status: 500 },
  ]);
  const answer = await send(`${url}/late`, { "accept-encoding": "zstd" });
  await once(answer, "data");
  received.resolve();
  await expect(buffer(answer)).rejects.toThrow("aborted");
});
