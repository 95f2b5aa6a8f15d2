/** The HTTP server of the emulator. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type AdminContext, answerAdmin } from "./admin.ts";
import type { EmulatorContext } from "./emulator-context.ts";
import { type Fault, faultReply } from "./faults.ts";
import { empty, problem, type Reply } from "./reply.ts";
import { isKnownKey, type Match, matchRoute, refuseKey } from "./router.ts";
import { hexWord } from "./traffic/draft.ts";
import { hashText } from "./traffic/random.ts";

const MAX_BODY_BYTES = 1_048_576;
/** The path holds a continuation token, which may be long. */
const MAX_HEADER_BYTES = 1_048_576;

/** Returns the body; `undefined` when it is larger than the emulator accepts. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const buffer = Buffer.from(chunk);
    bytes += buffer.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(buffer);
  }
  return bytes <= MAX_BODY_BYTES ? Buffer.concat(chunks) : undefined;
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Returns the platform's HTTP server over a context; `admin` adds the `/_emulator` routes. It does not listen yet. */
export function createEmulatorServer(
  context: EmulatorContext,
  admin: AdminContext,
  closing: AbortSignal,
): Server {
  let requests = 0;

  async function answerOperation(
    request: IncomingMessage,
    response: ServerResponse,
    match: Extract<Match, { kind: "found" }>,
    url: URL,
    signal: AbortSignal,
  ): Promise<void> {
    const { route, params } = match;
    const body = await readBody(request);
    const faults = context.faults.strike(route.operation);
    const entry = admin.requests.add({
      at: context.now(),
      operation: route.operation,
      method: request.method ?? "",
      path: url.pathname + url.search,
      status: 0,
      faults: faults.map((fault) => fault.kind),
    });
    for (const fault of faults) if (fault.kind === "latency") await delay(fault.ms, undefined, { signal });
    const answer = async (): Promise<Reply> => {
      const injected = faultReply(faults, route.operation, context.now());
      if (injected !== undefined) return injected;
      if (!isKnownKey(context, headerOf(request, "accesskey")))
        return refuseKey(context, route.operation, params);
      if (body === undefined)
        return problem(413, `The request body must be at most ${MAX_BODY_BYTES} bytes.`);
      const contentType = headerOf(request, "content-type") ?? "";
      return route.handle(context, {
        operation: route.operation,
        params,
        query: url.searchParams,
        contentType,
        contentEncoding: headerOf(request, "content-encoding") ?? "",
        body,
        faults,
        signal,
      });
    };
    const reply = await answer();
    entry.status = faults.some((fault) => fault.kind === "cut-socket" && fault.at === "before")
      ? 0
      : reply.status;
    await send(response, reply, faults, signal);
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    requests++;
    response.setHeader("cdn-requestid", hexWord(hashText(`${context.seed}/${requests}`)).repeat(4));
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, closing]);
    const url = URL.parse(request.url ?? "/", "http://emulator.invalid");
    const method = request.method ?? "GET";
    if (url === null) return send(response, empty(400), [], signal);
    // Two readers of such a request could see two different hosts.
    if ((request.headersDistinct["host"]?.length ?? 0) > 1)
      return send(response, problem(400, "The request has more than one Host header."), [], signal);
    if (url.pathname === "/_emulator" || url.pathname.startsWith("/_emulator/")) {
      const body = await readBody(request);
      const from = request.socket.remoteAddress ?? "";
      const { host, origin } = request.headers;
      const call = { method, path: url.pathname, body: body?.toString() ?? "", from, host, origin };
      return send(response, await answerAdmin(context, admin, call), [], signal);
    }
    // The pathname as received: URL would keep escapes, but it would also resolve dot segments inside tokens.
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const match = matchRoute(method, path);
    if (match.kind === "unknown") return send(response, empty(404), [], signal);
    if (match.kind === "wrong-method")
      return send(response, empty(405, { allow: match.allowed.join(", ") }), [], signal);
    return answerOperation(request, response, match, url, signal);
  }

  return createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) => {
    handle(request, response).catch(() => {
      // The client disconnected, the emulator closes, or a route failed. Only a failed route can still get an answer.
      if (response.headersSent || response.destroyed) response.destroy();
      else response.writeHead(500).end();
    });
  });
}

async function collect(body: Reply["body"]): Promise<Buffer> {
  if (typeof body === "string") return Buffer.from(body);
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

async function drip(
  response: ServerResponse,
  bytes: Buffer,
  fault: Extract<Fault, { kind: "slow-drip" }>,
  signal: AbortSignal,
) {
  for (let sent = 0; sent < bytes.length; sent += fault.bytes) {
    response.write(bytes.subarray(sent, sent + fault.bytes));
    await delay(fault.everyMs, undefined, { signal });
  }
  response.end();
}

async function stream(
  response: ServerResponse,
  body: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of body) {
    signal.throwIfAborted();
    if (!response.write(chunk)) await once(response, "drain", { signal });
  }
  response.end();
}

function find<Kind extends Fault["kind"]>(
  faults: readonly Fault[],
  kind: Kind,
): Extract<Fault, { kind: Kind }> | undefined {
  return faults.find((fault): fault is Extract<Fault, { kind: Kind }> => fault.kind === kind);
}

/** Sends an answer, damaged by the faults of the transport. Rejects when `signal` aborts. */
async function send(
  response: ServerResponse,
  reply: Reply,
  faults: readonly Fault[],
  signal: AbortSignal,
): Promise<void> {
  const cut = find(faults, "cut-socket");
  const dripping = find(faults, "slow-drip");
  const truncated = find(faults, "truncated-body");
  if (cut?.at === "before") {
    response.destroy();
    return;
  }
  if (typeof reply.body !== "string" && !cut && !dripping && !truncated) {
    response.writeHead(reply.status, reply.headers);
    await stream(response, reply.body, signal);
    return;
  }
  const whole = await collect(reply.body);
  // Truncated: a complete answer whose body ends too soon. Cut: the connection ends before the promised length.
  const bytes = truncated ? whole.subarray(0, Math.floor(whole.length * truncated.keep)) : whole;
  const hasBody = reply.status !== 204;
  response.writeHead(
    reply.status,
    hasBody ? { ...reply.headers, "content-length": bytes.length } : reply.headers,
  );
  if (cut) {
    response.flushHeaders();
    const sent = cut.at === "headers" ? 0 : Math.floor(bytes.length / 2);
    response.write(bytes.subarray(0, Math.max(sent, 0)), () => response.destroy());
    return;
  }
  if (dripping && bytes.length > 0) await drip(response, bytes, dripping, signal);
  else response.end(bytes);
}
