import { setTimeout as delay } from "node:timers/promises";
import {
  type RequestGate,
  type RequestPriority,
  ZonePausedError,
} from "#adapters/edge/transport/request-gate.ts";
import type { TakenTokens } from "#db/service/request-budgets.ts";
import { createLocalBucket } from "./local-bucket.ts";
import { createWaitingLine } from "./waiting-line.ts";

/** Tokens that were taken and not used expire after this time: an idle replica must not save up a burst or outlast a pause. */
const KEEP_MS = 500;
/** Longest time until a bucket that was empty or did not answer is asked again: another replica may have changed it. */
const LOOK_AGAIN_MS = 1_000;
/** Pause after a 429 without a Retry-After. */
const PAUSE_MS = 1_000;
/** A longer wait for one zone is returned to the caller, so that it holds nothing meanwhile. */
const LONGEST_ZONE_WAIT_MS = 30_000;
/** Share of the rate that each replica uses alone while the shared bucket does not answer. */
const UNSHARED_SHARE = 1 / 4;

export interface SharedGateDeps {
  readonly ratePerSecond: number;
  /** Takes tokens from the bucket of all replicas; rejects, in bounded time, when it does not answer. */
  readonly take: (atMost: number, priority: RequestPriority) => Promise<TakenTokens>;
  /** Stops the requests of all replicas for a zone; for null, and if other zones are refused too, all requests. */
  readonly pause: (pauseMs: number, zoneId: number | null) => Promise<{ readonly isForAll: boolean }>;
  /** Stores that a refused zone is answered again. */
  readonly answered: (zoneId: number) => Promise<void>;
  readonly maxPauseMs: number;
  /** After this wait a low caller counts as a normal one. Default 30 s. */
  readonly patienceMs?: number;
  /** Called with the time that a caller waited. */
  readonly onWaited: (ms: number, priority: RequestPriority) => void;
  /** Called with the error when the shared bucket stops answering, and with null when it answers again. */
  readonly onUnshared: (error: unknown) => void;
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
  const ownBucket = createLocalBucket(deps.ratePerSecond * UNSHARED_SHARE, now());
  let kept = { tokens: 0, until: 0 };
  let pausedUntil = 0;
  /** By zone that the platform refuses, the end of its pause. */
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

  /** Takes over what all replicas know. Keeps a pause of this replica that may not be stored yet. */
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
      lookAgainIn(line.head() === priority ? taken.waitMs : 0);
    } catch (thrown) {
      probeAt = now() + LOOK_AGAIN_MS;
      if (isUnshared || closed !== undefined) return;
      isUnshared = true;
      deps.onUnshared(thrown);
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
    if (!isUnshared || now() >= probeAt) askOnce(priority);
    if (!isUnshared) return;
    // The shared bucket is asked beside this, and may take its time to refuse.
    const { granted, waitMs } = ownBucket.take(line.count("normal") + line.count("low"), now());
    line.pass(granted);
    lookAgainIn(waitMs);
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

  /** Waits for the end of the zone's pause, but not for long. */
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
        // Refused by a bucket that is gone: then the others hear of the limit from the platform itself.
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
