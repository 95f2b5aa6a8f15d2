/** The request budget that all replicas share, and the line of requests that wait for it. */
import { setTimeout as delay } from "node:timers/promises";
import { type RequestGate, type RequestPriority, ZonePausedError } from "../transport/call.ts";

/** Unused tokens expire after this time, so that an idle replica neither saves up a burst nor ignores a pause. */
const KEEP_MS = 500;
/** A bucket that was empty or did not answer is asked again after this time, because other replicas change it. */
const LOOK_AGAIN_MS = 1_000;
/** Pause after a 429 without a Retry-After. */
const PAUSE_MS = 1_000;
/** If a zone's pause is longer, the caller gets an error instead of waiting, so that it holds nothing meanwhile. */
const LONGEST_ZONE_WAIT_MS = 30_000;
/** Share of the rate that each replica uses alone while the shared bucket does not answer. */
const UNSHARED_SHARE = 1 / 4;

/** The answer of the bucket of all replicas: whole tokens, and the time until the next one. */
interface TakenTokens {
  readonly granted: number;
  readonly waitMs: number;
  readonly isPaused: boolean;
  /** The zones that the platform has refused since its last answer for them, and the time until their next request. */
  readonly refusedZones: readonly { readonly zoneId: number; readonly waitMs: number }[];
}

interface SharedGateDeps {
  readonly ratePerSecond: number;
  /** Takes tokens from the bucket of all replicas. Rejects within a bounded time if the bucket does not answer. */
  readonly take: (atMost: number, priority: RequestPriority) => Promise<TakenTokens>;
  /** Pauses a zone's requests in all replicas. All requests are paused for null, or if more zones are refused. */
  readonly pause: (pauseMs: number, zoneId: number | null) => Promise<{ readonly isForAll: boolean }>;
  /** Stores that the platform answers for a refused zone again. */
  readonly answered: (zoneId: number) => Promise<void>;
  readonly maxPauseMs: number;
  /** After this wait a caller with low priority counts as a normal one. Default 30 s. */
  readonly patienceMs?: number;
  /** Called with the time that a caller waited. */
  readonly onWaited: (ms: number, priority: RequestPriority) => void;
  /** Called with the error when the shared bucket stops answering, and with null when it answers again. */
  readonly onUnshared: (error: unknown) => void;
  /** Monotonic, ms. */
  readonly now?: () => number;
}

/** This replica's limiter over the shared request budget. */
interface SharedGate extends RequestGate {
  /** Rejects all waiting callers. */
  close(): void;
}

/**
 * Takes tokens from the shared bucket in small chunks, one take at a time: for all waiting callers and a few in
 * advance. The advance is refilled while requests run, so that a page does not wait for a round trip. While the bucket
 * does not answer, this replica uses a quarter of the rate on its own. Five replicas then exceed the rate only a
 * little, and none stops.
 */
export function createSharedGate(deps: SharedGateDeps): SharedGate {
  const now = deps.now ?? (() => performance.now());
  const ahead = Math.min(Math.max(Math.floor(deps.ratePerSecond / 10), 1), 10);
  const line = createWaitingLine(deps.patienceMs);
  const ownBucket = createLocalBucket(deps.ratePerSecond * UNSHARED_SHARE, now());
  let kept = { tokens: 0, until: 0 };
  let pausedUntil = 0;
  /** The end of the pause of each zone that the platform refuses. */
  const refused = new Map<number, number>();
  let isUnshared = false;
  let probeAt = 0;
  let asking: Promise<unknown> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed: Error | undefined;

  const isPaused = () => now() < pausedUntil;
  const zoneWait = (zoneId: number | null) =>
    zoneId === null ? 0 : Math.max(0, (refused.get(zoneId) ?? 0) - now());
  const hasKept = () => kept.tokens > 0 && now() < kept.until && !isPaused();

  function tryAgainIn(ms: number): void {
    clearTimeout(timer);
    timer = undefined;
    if (closed === undefined && line.head() !== null)
      timer = setTimeout(serve, Math.min(Math.max(ms, 1), LOOK_AGAIN_MS));
  }

  /** Serves waiting callers even if the answer is old. With a slow bucket nobody would get a token otherwise. */
  function spend(granted: number, askedAt: number): void {
    const left = granted - (isPaused() ? 0 : line.pass(granted));
    const until = askedAt + KEEP_MS;
    kept = hasKept()
      ? { tokens: Math.min(kept.tokens + left, ahead), until: Math.min(kept.until, until) }
      : { tokens: Math.min(left, ahead), until };
  }

  /** Takes over the pauses that all replicas know. Keeps a pause of this replica that may not be stored yet. */
  function noteRefused(zones: TakenTokens["refusedZones"]): void {
    for (const [zoneId, until] of refused) if (until <= now()) refused.delete(zoneId);
    for (const { zoneId, waitMs } of zones)
      refused.set(zoneId, Math.max(refused.get(zoneId) ?? 0, now() + waitMs));
  }

  async function ask(priority: RequestPriority): Promise<void> {
    const askedAt = now();
    try {
      const taken = await deps.take(line.count(priority) + ahead, priority);
      if (isUnshared) deps.onUnshared(null);
      isUnshared = false;
      noteRefused(taken.refusedZones);
      if (taken.isPaused) pausedUntil = Math.max(pausedUntil, now() + taken.waitMs);
      spend(taken.granted, askedAt);
      // A low caller's answer says nothing about the normal one that came meanwhile.
      tryAgainIn(line.head() === priority ? taken.waitMs : 0);
    } catch (thrown) {
      probeAt = now() + LOOK_AGAIN_MS;
      if (isUnshared || closed !== undefined) return;
      isUnshared = true;
      deps.onUnshared(thrown);
      tryAgainIn(0);
    }
  }

  function askOnce(priority: RequestPriority): void {
    asking ??= ask(priority).finally(() => {
      asking = undefined;
      // Callers that arrived meanwhile were not counted.
      if (timer === undefined) tryAgainIn(0);
    });
  }

  function serve(): void {
    clearTimeout(timer);
    timer = undefined;
    const priority = line.head();
    if (closed !== undefined || priority === null) return;
    if (isPaused()) return tryAgainIn(pausedUntil - now());
    if (!isUnshared || now() >= probeAt) askOnce(priority);
    if (!isUnshared) return;
    // The shared bucket is asked beside this, and may take its time to refuse.
    const { granted, waitMs } = ownBucket.take(line.count("normal") + line.count("low"), now());
    line.pass(granted);
    tryAgainIn(waitMs);
  }

  async function takeTurn(priority: RequestPriority, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (closed !== undefined) throw closed;
    const head = line.head();
    if (hasKept() && head !== "normal" && head !== priority) {
      kept.tokens--;
      if (kept.tokens <= ahead / 2) askOnce(priority);
      deps.onWaited(0, priority);
      return;
    }
    const since = now();
    const passed = line.join(priority, signal);
    // A low caller's wait for the reserve to be spared is not the normal caller's.
    if (timer === undefined || (priority === "normal" && line.count("normal") === 1)) serve();
    await passed.finally(() => deps.onWaited(now() - since, priority));
  }

  /** Waits for the end of the zone's pause. Throws if the pause is long. */
  async function waitForZone(zoneId: number, signal: AbortSignal): Promise<void> {
    const waitMs = zoneWait(zoneId);
    if (waitMs > LONGEST_ZONE_WAIT_MS) throw new ZonePausedError(zoneId, waitMs);
    await delay(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }

  function pauseAll(pauseMs: number): void {
    pausedUntil = Math.max(pausedUntil, now() + pauseMs);
    kept.tokens = 0;
  }

  return {
    async enter(priority, signal, zoneId) {
      do {
        if (zoneId !== null && zoneWait(zoneId) > 0) await waitForZone(zoneId, signal);
        await takeTurn(priority, signal);
        // While the caller waited, the platform may have refused the zone again. Then the token is lost.
      } while (zoneWait(zoneId) > 0);
    },

    limited(retryAfterMs, zoneId) {
      const pauseMs = Math.min(
        retryAfterMs === null || retryAfterMs <= 0 ? PAUSE_MS : retryAfterMs,
        deps.maxPauseMs,
      );
      if (zoneId === null) pauseAll(pauseMs);
      else refused.set(zoneId, Math.max(refused.get(zoneId) ?? 0, now() + pauseMs));
      deps.pause(pauseMs, zoneId).then(
        ({ isForAll }) => {
          if (isForAll && zoneId !== null) pauseAll(pauseMs);
        },
        // If the bucket does not answer, the platform limits the other replicas itself.
        () => undefined,
      );
    },

    answered(zoneId) {
      // An answer to a request that was sent before the refusal ends no refusal.
      if (!refused.has(zoneId) || zoneWait(zoneId) > 0) return;
      refused.delete(zoneId);
      deps.answered(zoneId).catch(() => undefined);
    },

    close() {
      closed = new Error("the request gate was closed");
      clearTimeout(timer);
      line.dissolve(closed);
    },
  };
}

/** Creates a token bucket of this process only. It starts empty. All times are of one monotonic clock, in ms. */
function createLocalBucket(ratePerSecond: number, startedAt: number) {
  const burst = Math.max(1, ratePerSecond);
  let tokens = 0;
  let filledAt = startedAt;

  return {
    /** Takes up to `atMost` whole tokens. If there is none, also returns the time until the next token. */
    take(atMost: number, now: number): { granted: number; waitMs: number } {
      tokens = Math.min(burst, tokens + ((now - filledAt) / 1_000) * ratePerSecond);
      filledAt = now;
      const granted = Math.min(atMost, Math.floor(tokens));
      tokens -= granted;
      return { granted, waitMs: granted > 0 ? 0 : ((1 - tokens) / ratePerSecond) * 1_000 };
    },
  };
}

interface Waiter {
  readonly pass: () => void;
  readonly fail: (reason: unknown) => void;
}

/** After this wait a low caller counts as a normal one, so that polling cannot stop the proof. */
const PATIENCE_MS = 30_000;

/** Creates a queue in order of arrival. Normal callers precede low ones that have waited less than this. */
export function createWaitingLine(patienceMs = PATIENCE_MS) {
  const lines: Record<RequestPriority, Set<Waiter>> = { normal: new Set(), low: new Set() };

  return {
    count: (priority: RequestPriority) => lines[priority].size,
    /** Returns the priority of the next caller; null if nobody waits. */
    head(): RequestPriority | null {
      if (lines.normal.size > 0) return "normal";
      return lines.low.size > 0 ? "low" : null;
    },
    /** Resolves when the caller may go. Leaves the queue and rejects with the signal's reason if the signal aborts. */
    join(priority: RequestPriority, signal: AbortSignal): Promise<void> {
      return new Promise((resolve, reject) => {
        const leave = () => {
          clearTimeout(patience);
          lines.low.delete(waiter);
          lines.normal.delete(waiter);
          signal.removeEventListener("abort", onAbort);
        };
        const waiter: Waiter = {
          pass: () => [leave(), resolve()],
          fail: (reason) => [leave(), reject(reason)],
        };
        const onAbort = () => waiter.fail(signal.reason);
        const promote = () => {
          lines.low.delete(waiter);
          lines.normal.add(waiter);
        };
        const patience = priority === "low" ? setTimeout(promote, patienceMs).unref() : undefined;
        signal.addEventListener("abort", onAbort, { once: true });
        lines[priority].add(waiter);
      });
    },
    /** Lets up to `count` callers go, and returns their number. */
    pass(count: number): number {
      const next = [...lines.normal, ...lines.low].slice(0, count);
      for (const waiter of next) waiter.pass();
      return next.length;
    },
    /** Rejects all waiting callers. */
    dissolve(reason: Error): void {
      for (const waiter of [...lines.normal, ...lines.low]) waiter.fail(reason);
    },
  };
}
