import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Fault } from "./faults.ts";
import type { Reply } from "./reply.ts";

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
export async function send(
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
