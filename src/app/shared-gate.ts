import type { RequestGate, RequestPriority } from "../edge/transport/request-gate.ts";
import { createLocalBucket } from "./local-bucket.ts";
import { createWaitingLine } from "./waiting-line.ts";

/** What is left of a take is worth nothing after this: an idle replica must not save up a burst, nor outlast a pause. */
const KEEP_MS = 500;
/** At most, between two looks at a bucket that had nothing or did not answer: another replica may have changed it. */
const LOOK_AGAIN_MS = 1_000;
/** After a 429 that does not say for how long. */
const PAUSE_MS = 1_000;
/** Of the rate, for each replica by itself while nobody can be asked. */
const LONELY_SHARE = 1 / 4;

export interface SharedGateDeps {
  readonly ratePerSecond: number;
  /** Takes tokens from the bucket of all replicas; rejects, in bounded time, when it does not answer. */
  readonly take: (
    atMost: number,
    priority: RequestPriority,
  ) => Promise<{ granted: number; waitMs: number; isPaused: boolean }>;
  /** Stops all replicas. */
  readonly pause: (pauseMs: number) => Promise<void>;
  readonly maxPauseMs: number;
  /** After this wait a low caller counts as a normal one. Default 30 s. */
  readonly patienceMs?: number;
  /** Told how long a caller stood in line. */
  readonly onWaited: (ms: number) => void;
  /** Told when the shared bucket stops answering, and, with null, when it does again. */
  readonly onLonely: (error: unknown) => void;
  /** Monotonic, ms. */
  readonly now?: () => number;
}

/** This replica's door to the shared budget. */
export interface SharedGate extends RequestGate {
  /** Sends away whoever waits. */
  close(): void;
}

/**
 * Takes tokens in small chunks, one take at a time: for everybody in line and a few ahead, which are topped up beside the
 * calls, so that a page does not wait for a round trip while there are tokens. While the bucket does not answer a quarter
 * of the rate is spent alone: five replicas then still send about what all may, and none is ever stuck.
 */
export function createSharedGate(deps: SharedGateDeps): SharedGate {
  const now = deps.now ?? (() => performance.now());
  const ahead = Math.min(Math.max(Math.floor(deps.ratePerSecond / 10), 1), 10);
  const line = createWaitingLine(deps.patienceMs);
  const lonely = createLocalBucket(deps.ratePerSecond * LONELY_SHARE, now());
  let kept = { tokens: 0, until: 0 };
  let pausedUntil = 0;
  let isLonely = false;
  let probeAt = 0;
  let asking: Promise<unknown> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed: Error | undefined;

  const isPaused = () => now() < pausedUntil;
  const hasKept = () => kept.tokens > 0 && now() < kept.until && !isPaused();

  function lookAgainIn(ms: number): void {
    clearTimeout(timer);
    timer = undefined;
    if (closed === undefined && line.head() !== null)
      timer = setTimeout(serve, Math.min(Math.max(ms, 1), LOOK_AGAIN_MS));
  }

  /** A stale answer still serves those in line: with a slow bucket nobody would ever pass otherwise. */
  function spend(granted: number, askedAt: number): void {
    const left = granted - (isPaused() ? 0 : line.pass(granted));
    const until = askedAt + KEEP_MS;
    kept = hasKept()
      ? { tokens: Math.min(kept.tokens + left, ahead), until: Math.min(kept.until, until) }
      : { tokens: Math.min(left, ahead), until };
  }

  async function ask(priority: RequestPriority): Promise<void> {
    const askedAt = now();
    try {
      const taken = await deps.take(line.count(priority) + ahead, priority);
      if (isLonely) deps.onLonely(null);
      isLonely = false;
      if (taken.isPaused) pausedUntil = Math.max(pausedUntil, now() + taken.waitMs);
      spend(taken.granted, askedAt);
      // A low caller's answer says nothing about the normal one that came meanwhile.
      lookAgainIn(line.head() === priority ? taken.waitMs : 0);
    } catch (thrown) {
      probeAt = now() + LOOK_AGAIN_MS;
      if (isLonely || closed !== undefined) return;
      isLonely = true;
      deps.onLonely(thrown);
      lookAgainIn(0);
    }
  }

  function askOnce(priority: RequestPriority): void {
    asking ??= ask(priority).finally(() => {
      asking = undefined;
      // Whoever came meanwhile was not counted in.
      if (timer === undefined) lookAgainIn(0);
    });
  }

  function serve(): void {
    clearTimeout(timer);
    timer = undefined;
    const priority = line.head();
    if (closed !== undefined || priority === null) return;
    if (isPaused()) return lookAgainIn(pausedUntil - now());
    if (!isLonely || now() >= probeAt) askOnce(priority);
    if (!isLonely) return;
    // The shared bucket is asked beside this, and may take its time to refuse.
    const { granted, waitMs } = lonely.take(line.count("normal") + line.count("low"), now());
    line.pass(granted);
    lookAgainIn(waitMs);
  }

  return {
    async enter(priority, signal) {
      signal.throwIfAborted();
      if (closed !== undefined) throw closed;
      const head = line.head();
      if (hasKept() && head !== "normal" && head !== priority) {
        kept.tokens--;
        if (kept.tokens <= ahead / 2) askOnce(priority);
        return;
      }
      const since = now();
      const passed = line.join(priority, signal);
      // A low caller's wait for the reserve to be spared is not the normal caller's.
      if (timer === undefined || (priority === "normal" && line.count("normal") === 1)) serve();
      await passed.finally(() => deps.onWaited(now() - since));
    },

    limited(retryAfterMs) {
      const pauseMs = Math.min(
        retryAfterMs === null || retryAfterMs <= 0 ? PAUSE_MS : retryAfterMs,
        deps.maxPauseMs,
      );
      pausedUntil = Math.max(pausedUntil, now() + pauseMs);
      kept.tokens = 0;
      // Refused by a bucket that is gone: then the others hear of the limit from the platform itself.
      deps.pause(pauseMs).catch(() => undefined);
    },

    close() {
      closed = new Error("the request gate was closed");
      clearTimeout(timer);
      line.dissolve(closed);
    },
  };
}
