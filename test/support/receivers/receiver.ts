import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync } from "node:zlib";

/** An event as it arrived. */
export interface Arrived {
  readonly id: string;
  readonly body: unknown;
}

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  /** Decompressed. */
  readonly text: string;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text as it is. */
  readonly body: unknown;
}

/** What goes wrong with one request that sends events. The ids of `partial` are refused or postponed as the vendor does. */
export type Fault =
  | { readonly is: "status"; readonly status: number; readonly retryAfter?: string; readonly body?: unknown }
  | { readonly is: "cut-before" | "cut-after" | "foreign-answer" }
  | { readonly is: "slow"; readonly ms: number }
  | {
      readonly is: "partial";
      readonly refused?: readonly string[];
      readonly postponed?: readonly string[];
    };

interface Taken {
  readonly refused: ReadonlySet<string>;
  readonly postponed: ReadonlySet<string>;
  readonly isStored: (id: string) => boolean;
  /** Returns whether the event is new. */
  readonly store: (event: Arrived) => boolean;
}

export interface Vendor {
  /** Headers of every answer. */
  readonly headers?: (request: Received) => Readonly<Record<string, string>>;
  /** Answers a request that sends no events, also one without rights. Null for all others. */
  readonly answer: (request: Received, stored: ReadonlyMap<string, unknown>) => Answer | null;
  readonly read: (request: Received) => readonly Arrived[] | Promise<readonly Arrived[]>;
  readonly take: (events: readonly Arrived[], taken: Taken, request: Received) => Answer;
  /** The body with which the vendor answers a status. */
  readonly failure: (status: number, reason?: string) => unknown;
}

/** A receiver of events on its own port. */
export interface Receiver {
  readonly origin: string;
  /** The body of every stored event by its id. */
  readonly stored: ReadonlyMap<string, unknown>;
  /** How often an event arrived that was stored already. */
  readonly duplicates: () => number;
  /** Every request that was read. */
  readonly requests: readonly Received[];
  /** The largest body, uncompressed; a larger one gets 413. */
  maxBytes: number;
  /** Asked before each request that sends events, with their ids. Null: nothing goes wrong. */
  fail(next: ((ids: readonly string[]) => Fault | null) | null): void;
  /** Listens again on the same port, with what was stored. */
  start(): Promise<void>;
  /** Cuts every connection, as a kill does. */
  stop(): Promise<void>;
  restart(): Promise<void>;
}

export async function startReceiver(vendor: Vendor): Promise<Receiver> {
  const stored = new Map<string, unknown>();
  const requests: Received[] = [];
  let duplicates = 0;
  let port = 0;
  let nextFault: ((ids: readonly string[]) => Fault | null) | null = null;
  let server: Server | null = null;

  const store = ({ id, body }: Arrived) => {
    const isNew = !stored.has(id);
    if (!isNew) duplicates += 1;
    stored.set(id, body);
    return isNew;
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = await readRequest(request);
    requests.push(received);
    const send = ({ status, headers, body }: Answer) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const type = { "content-type": "application/json", ...vendor.headers?.(received), ...headers };
      response.writeHead(status, type).end(request.method === "HEAD" ? undefined : text);
    };
    const other = vendor.answer(received, stored);
    if (other !== null) return send(other);
    if (received.text.length > receiver.maxBytes) return send({ status: 413, body: vendor.failure(413) });
    let events: readonly Arrived[];
    try {
      events = await vendor.read(received);
    } catch (thrown) {
      return send({ status: 400, body: vendor.failure(400, String(thrown)) });
    }
    const fault = nextFault?.(events.map(({ id }) => id)) ?? null;
    if (fault?.is === "status") {
      const headers = fault.retryAfter === undefined ? {} : { "retry-after": fault.retryAfter };
      return send({ status: fault.status, headers, body: fault.body ?? vendor.failure(fault.status) });
    }
    if (fault?.is === "foreign-answer") return send({ status: 200, body: "<html>Please sign in</html>" });
    if (fault?.is === "cut-before") return void request.socket.destroy();
    if (fault?.is === "slow") await delay(fault.ms);
    const { refused = [], postponed = [] } = fault?.is === "partial" ? fault : {};
    const named = { refused: new Set(refused), postponed: new Set(postponed) };
    const answer = vendor.take(events, { ...named, isStored: (id) => stored.has(id), store }, received);
    if (fault?.is === "cut-after") return void request.socket.destroy();
    send(answer);
  }

  const receiver: Receiver = {
    get origin() {
      return `http://127.0.0.1:${port}`;
    },
    stored,
    duplicates: () => duplicates,
    requests,
    maxBytes: Number.POSITIVE_INFINITY,
    fail(next) {
      nextFault = next;
    },
    async start() {
      server = createServer((request, response) => {
        handle(request, response).catch(() => response.destroy());
      });
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
      const address = server.address();
      if (typeof address === "object" && address !== null) port = address.port;
    },
    async stop() {
      const stopping = server;
      server = null;
      if (stopping === null) return;
      stopping.close();
      stopping.closeAllConnections();
      await once(stopping, "close");
    },
    async restart() {
      await receiver.stop();
      await receiver.start();
    },
  };
  await receiver.start();
  return receiver;
}

async function readRequest(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const url = new URL(request.url ?? "/", "http://receiver");
  return {
    method: request.method ?? "",
    path: decodeURIComponent(url.pathname),
    query: url.searchParams,
    headers: request.headers,
    text: (request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes).toString(),
  };
}
