import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Handler = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

/** A real HTTP server that answers each request with the next reply of a queue and remembers what it was asked. */
export async function startReplyQueue() {
  const queue: Handler[] = [];
  const requests: SeenRequest[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const seen = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
      requests.push(seen);
      const next = queue.shift();
      if (next === undefined)
        response.writeHead(599, { "content-type": "text/plain" }).end("no reply was queued");
      else void next(response, seen);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    /** An object is sent as JSON, text and bytes as they are. */
    reply(status: number, body: unknown = "", headers: Record<string, string> = {}): void {
      queue.push((response) => {
        const isRaw = typeof body === "string" || Buffer.isBuffer(body);
        response.writeHead(status, { ...(isRaw ? {} : { "content-type": "application/json" }), ...headers });
        response.end(isRaw ? body : JSON.stringify(body));
      });
    },
    handle(handler: Handler): void {
      queue.push(handler);
    },
    pending: () => queue.length,
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export type ReplyQueue = Awaited<ReturnType<typeof startReplyQueue>>;
