import { expect, onTestFinished, vi } from "vitest";
import { startDeadline } from "#lib/waiting.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { type RequestGate, type RequestPriority, ZonePausedError } from "#platform/transport/call.ts";
import { collect } from "./support/collect.ts";
import { failure, lastHour, listPage, NOW, test, today } from "./support/edge-test.ts";

/** Written down; `hold` is what a caller waits for. */
function recordGate(hold: (signal: AbortSignal) => Promise<void> = async () => {}) {
  const entered: RequestPriority[] = [];
  const zones: (number | null)[] = [];
  const limits: (number | null)[] = [];
  const answered: number[] = [];
  const gate: RequestGate = {
    async enter(priority, signal, zoneId) {
      entered.push(priority);
      zones.push(zoneId);
      await hold(signal);
    },
    limited: (retryAfterMs) => void limits.push(retryAfterMs),
    answered: (zoneId) => void answered.push(zoneId),
  };
  return { gate, entered, zones, limits, answered };
}

/** Resolves never, rejects like a gate. */
function forever(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

test("every attempt passes the gate, retries too", async ({ platform, open }) => {
  const { gate, entered, limits } = recordGate();
  platform.reply(503);
  platform.reply(502);
  platform.reply(200, listPage());
  await open({ gate }).client.listEventLogs(today);
  expect(platform.requests).toHaveLength(3);
  expect(entered).toHaveLength(3);
  expect(limits).toEqual([]);
});

test("so does a stream, once, before its first byte", async ({ platform, open }) => {
  const { gate, entered } = recordGate();
  platform.reply(200, "timestamp,\n1,\n");
  await collect((await open({ gate }).client.exportEventLogs(lastHour)).csv);
  expect(entered).toEqual(["normal"]);
});

test("no request is sent before the limiter grants it", async ({ platform, open }) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const entering = Promise.withResolvers<void>();
  const { gate } = recordGate(() => {
    entering.resolve();
    return promise;
  });
  platform.reply(200, listPage());
  const call = open({ gate }).client.listEventLogs(today);
  await entering.promise;
  expect(platform.requests).toHaveLength(0);
  resolve();
  await call;
  expect(platform.requests).toHaveLength(1);
});

test("the limiter gets every 429 with its Retry-After (F40)", async ({ platform, open }) => {
  const { gate, limits } = recordGate();
  platform.reply(429, "", { "retry-after": "7" });
  platform.reply(429);
  platform.reply(429, "", { "retry-after": "86400" });
  expect(await failure(open({ gate }).client.listEventLogs(today))).toMatchObject({
    code: "EDGE_RATE_LIMITED",
    disposition: "wait",
  });
  expect(limits).toEqual([7_000, null, 86_400_000]);
});

test("the limiter gets the zone of each request, and each zone that was answered", async ({
  platform,
  open,
}) => {
  const { gate, zones, answered } = recordGate();
  const { client } = open({ gate });
  platform.reply(429, "", { "retry-after": "7" });
  platform.reply(200, listPage());
  platform.reply(500);
  await client.listEventLogs(today);
  await failure(client.listApiKeys({}));
  expect(zones.slice(0, 3)).toEqual([today.shieldZoneId, today.shieldZoneId, null]);
  expect(answered).toEqual([today.shieldZoneId]);
});

test("a call for a zone that has to wait long fails at once, sends nothing and says when to try again", async ({
  platform,
  open,
}) => {
  const { gate, limits } = recordGate(async () => {
    throw new ZonePausedError(today.shieldZoneId, 90_000);
  });
  const edge = open({ gate });
  const error = await failure(edge.client.listEventLogs(today));
  expect(error).toMatchObject({
    code: "EDGE_RATE_LIMITED",
    disposition: "wait",
    waitMs: 90_000,
    status: null,
  });
  expect(error.message).toContain(
    `zone ${today.shieldZoneId} (429); the next request for it may be sent in 90 s`,
  );
  expect([platform.requests.length, edge.attempts.length, limits.length]).toEqual([0, 0, 0]);
});

test("waiting at the gate takes nothing from the time that retries have", async ({ platform, open }) => {
  let now = NOW;
  const { gate } = recordGate(async () => void (now += 3_600_000));
  platform.reply(503);
  platform.reply(429, "", { "retry-after": "7" });
  platform.reply(200, listPage());
  const edge = open({ gate, timeoutMs: 30_000, clock: () => now });
  await edge.client.listEventLogs(today);
  expect(edge.sleeps).toEqual([1_000, 7_000]);
  expect(edge.attempts.map(({ durationMs }) => durationMs)).toEqual([0, 0, 0]);
});

test("a suspended deadline stands still, and its time goes on afterwards", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const deadline = startDeadline(1_000, undefined, new AbortController().signal);
  vi.advanceTimersByTime(600);
  const waited = Promise.withResolvers<void>();
  const suspended = deadline.suspend(() => waited.promise);
  vi.advanceTimersByTime(3_600_000);
  waited.resolve();
  await suspended;
  vi.advanceTimersByTime(399);
  expect(deadline.endedBy()).toBeNull();
  vi.advanceTimersByTime(2);
  expect(deadline.endedBy()).toBe("timeout");
  deadline.release();
});

test("a caller that gives up while it waits gets its own reason, and nothing is sent", async ({
  platform,
  open,
}) => {
  const stop = new AbortController();
  const { gate } = recordGate((signal) => {
    stop.abort(new Error("changed my mind"));
    return signal.aborted ? Promise.reject(signal.reason as Error) : forever(signal);
  });
  const call = open({ gate }).client.listEventLogs(today, stop.signal);
  await expect(call).rejects.toThrow("changed my mind");
  expect(platform.requests).toHaveLength(0);
});

test("a transport that closes ends those who wait", async ({ platform, open }) => {
  const entering = Promise.withResolvers<void>();
  const { gate } = recordGate((signal) => {
    entering.resolve();
    return forever(signal);
  });
  const { client, transport } = open({ gate });
  const call = failure(client.listEventLogs(today));
  await entering.promise;
  await transport.close();
  expect(await call).toMatchObject({ code: "EDGE_NETWORK" });
  expect(platform.requests).toHaveLength(0);
});

test("a client's priority goes with each of its calls", async ({ platform, open }) => {
  const { gate, entered } = recordGate();
  const { transport, client } = open({ gate });
  platform.reply(200, listPage());
  platform.reply(200, listPage());
  platform.reply(200, "timestamp,\n");
  await client.listEventLogs(today);
  const patient = createEdgeClient(transport, "low");
  await patient.listEventLogs(today);
  await collect((await patient.exportEventLogs(lastHour)).csv);
  expect(entered).toEqual(["normal", "low", "low"]);
});
