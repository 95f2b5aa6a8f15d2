import { test as base } from "vitest";
import { createSecret } from "#lib/secret.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import {
  type AttemptReport,
  createEdgeTransport,
  type EdgeTransport,
  type EdgeTransportOptions,
} from "#platform/transport/transport.ts";
import { type ReplyQueue, startReplyQueue } from "./reply-queue.ts";

export const ACCESS_KEY = "0f5a1c1e-key-of-the-tests-9d20";
export const NOW = Date.UTC(2026, 10, 21, 12);
export const ZONE = 101;

/** A transport that records its pauses instead of waiting, with jitter at its maximum. */
export function openEdge(url: string, options: Partial<EdgeTransportOptions> = {}) {
  const sleeps: number[] = [];
  const attempts: AttemptReport[] = [];
  const transport: EdgeTransport = createEdgeTransport({
    baseUrl: url,
    accessKey: createSecret(ACCESS_KEY),
    clock: () => NOW,
    random: () => 1,
    sleep: async (ms) => void sleeps.push(ms),
    onAttempt: (report) => attempts.push(report),
    ...options,
  });
  return { transport, client: createEdgeClient(transport), sleeps, attempts };
}

type Edge = ReturnType<typeof openEdge>;

interface Fixtures {
  /** The platform, scripted. */
  readonly platform: ReplyQueue;
  /** A client of it. */
  readonly edge: Edge;
  /** More clients with other settings. */
  readonly open: (options: Partial<EdgeTransportOptions>) => Edge;
}

export const test = base.extend<Fixtures>({
  platform: async ({}, use) => {
    const platform = await startReplyQueue();
    await use(platform);
    await platform.close();
  },
  edge: async ({ platform }, use) => {
    const edge = openEdge(platform.url);
    await use(edge);
    await edge.transport.close();
  },
  open: async ({ platform }, use) => {
    const opened: Edge[] = [];
    await use((options) => {
      const edge = openEdge(platform.url, options);
      opened.push(edge);
      return edge;
    });
    for (const edge of opened) await edge.transport.close();
  },
});

/** The EdgeError that a call ends with. */
export async function failure(call: Promise<unknown>): Promise<EdgeError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof EdgeError) return error;
    throw error;
  }
  throw new Error("the call succeeded");
}

/** A page of the date-paged list. */
export function listPage(over: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    logs: [],
    hasMoreData: false,
    continuationToken: "",
    startToken: "s",
    errorResponse: null,
    ...over,
  };
}

export const today = { shieldZoneId: ZONE, date: "11-21-2026", continuationToken: null };
export const lastHour = { shieldZoneId: ZONE, request: { from: NOW - 3_600_000, to: NOW } };
