import { once } from "node:events";
import net from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { serializerCompiler } from "fastify-type-provider-zod";
import { expect, onTestFinished, test } from "vitest";
import { addConcurrencyLimit } from "#faces/http/limits/refuse.ts";
import { validatorCompiler } from "#faces/http/routes/read-body.ts";
import { addAlertStream } from "#faces/http/routes/v1/alert-stream.ts";

/** A server in which the first key takes as long to look up as its client takes to leave. */
async function startSlow(addRoutes: (app: FastifyInstance) => void) {
  const app = Fastify();
  onTestFinished(() => app.close());
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.decorateRequest("caller", null);
  let isFirst = true;
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  app.addHook("onRequest", async (request, reply) => {
    if (isFirst) {
      isFirst = false;
      const closed = once(reply.raw, "close");
      asked.resolve();
      await closed;
      setImmediate(() => answered.resolve());
    }
    request.caller = {
      keyId: "k",
      name: "k",
      roles: [],
      scopes: new Set(["read"]),
      zoneIds: null,
      masked: false,
    };
  });
  addRoutes(app);
  const url = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
  const leaveEarly = async (line: string) => {
    const socket = net.connect(Number(url.port), url.hostname);
    socket.write(`${line} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`);
    await asked.promise;
    socket.destroy();
    await answered.promise;
  };
  return { url, leaveEarly };
}

test("S4: a client that leaves while its key is looked up keeps no place of those who are worked on", async () => {
  const { url, leaveEarly } = await startSlow((app) => {
    addConcurrencyLimit(app, { perKey: { read: 1, export: 1 } });
    app.post("/s", { config: { heavy: "read" } }, async () => "ok");
  });
  await leaveEarly("POST /s");
  expect((await fetch(new URL("/s", url), { method: "POST" })).status).toBe(200);
});

test("a client that leaves while its key is looked up is counted as no stream", async () => {
  const { url, leaveEarly } = await startSlow((app) => {
    const join = () => Promise.reject(new Error("joined"));
    addAlertStream(app, { hub: { join }, streamsPerKey: 1 } as never);
  });
  await leaveEarly("GET /api/v1/alerts/stream");
  const answer = await fetch(new URL("/api/v1/alerts/stream", url));
  expect(await answer.text()).toContain("joined");
});
