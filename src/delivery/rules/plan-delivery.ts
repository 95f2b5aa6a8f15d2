/** When a notification is sent, tried again or given up. */

import type { ChannelRate } from "#delivery/receivers/channel-definition.ts";
import type { Disposition } from "#lib/errors.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CircuitState } from "#model/kinds.ts";

/**
 * No rate is used, and no circuit is open, for longer than this. A time further ahead was written while the database's
 * clock was wrong. Such a time is ignored, because it would keep the channel silent.
 */
const FURTHEST_MS = HOUR_MS;
/** Share of the rate that is reserved for digests. */
const RESERVE = 0.25;

export interface ChannelState extends Circuit {
  /** Time up to which the rate is used; epoch ms. */
  readonly spentUntilMs: number;
}

/**
 * `nothing`: send nothing now. `probe`: send one message. `alone`: send this number of messages, each on its own.
 * `together`: send as many messages as fit into one digest.
 */
type ClaimPlan =
  | { readonly kind: "nothing" }
  | { readonly kind: "probe" }
  | { readonly kind: "alone"; readonly atMost: number }
  | { readonly kind: "together" };

/** Decides what may be sent to a channel next. */
export function planClaim(state: ChannelState, rate: ChannelRate, nowMs: number): ClaimPlan {
  if (state.state === "disabled") return { kind: "nothing" };
  if (state.state === "open")
    return plausible(state.retryAtMs, nowMs) <= nowMs ? { kind: "probe" } : { kind: "nothing" };
  const left = countLeft(state.spentUntilMs, rate, nowMs);
  const reserve = rate.digest === null ? 0 : Math.ceil(rate.perMinute * RESERVE);
  if (left > reserve) return { kind: "alone", atMost: left - reserve };
  return left > 0 && rate.digest !== null ? { kind: "together" } : { kind: "nothing" };
}

/** Returns the number of messages that the rate allows now. */
function countLeft(spentUntilMs: number, { perMinute }: ChannelRate, nowMs: number): number {
  const aheadMs = Math.max(plausible(spentUntilMs, nowMs) - nowMs, 0);
  return Math.max(Math.floor(perMinute - (aheadMs * perMinute) / MINUTE_MS + 1e-6), 0);
}

/** Returns the time up to which the rate is used after this number of further messages. */
export function spend(spentUntilMs: number, { perMinute }: ChannelRate, sent: number, nowMs: number): number {
  return Math.max(plausible(spentUntilMs, nowMs), nowMs) + (sent * MINUTE_MS) / perMinute;
}

function plausible(atMs: number, nowMs: number): number {
  return atMs - nowMs > FURTHEST_MS ? nowMs : atMs;
}

/** The circuit opens after this number of failures in a row, of any messages. */
const FAILURES_TO_OPEN = 5;
const FIRST_PAUSE_MS = 30_000;

/** The state of a channel's circuit; times in epoch ms. */
export interface Circuit {
  /** `disabled`: the receiver is gone for good (410). A restart or a changed configuration ends this state. */
  readonly state: CircuitState;
  /** Number of failures since the last success. */
  readonly failures: number;
  /** Number of openings since the last success. */
  readonly openings: number;
  /** Null while closed. */
  readonly openedAtMs: number | null;
  /** While the circuit is open: the time from which one message may be sent as a probe. */
  readonly retryAtMs: number;
  readonly lastError: string | null;
}

export interface AttemptsEnded {
  /** One of the channel's capabilities. */
  readonly longestPauseMs: number;
  readonly nowMs: number;
  readonly succeeded: number;
  readonly failed: number;
  /** True if the receiver answered that the address is gone for good (410). */
  readonly isGone: boolean;
  readonly lastError: string | null;
}

/** Returns the circuit after attempts that ran at the same time. One success shows that the channel works. */
export function afterAttempts(circuit: Circuit, ended: AttemptsEnded): Circuit {
  const { longestPauseMs, nowMs, succeeded, failed, isGone, lastError } = ended;
  if (isGone) return { ...circuit, state: "disabled", openedAtMs: nowMs, lastError };
  // An attempt that was in progress when the channel was disabled changes nothing.
  if (circuit.state === "disabled") return circuit;
  if (succeeded > 0) return closeCircuit(nowMs);
  if (failed === 0) return circuit;
  const failures = circuit.failures + failed;
  if (failures < FAILURES_TO_OPEN) return { ...circuit, failures, lastError };
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(circuit.openings, 20), longestPauseMs);
  return {
    state: "open",
    failures,
    openings: circuit.openings + 1,
    openedAtMs: circuit.openedAtMs ?? nowMs,
    retryAtMs: nowMs + pauseMs,
    lastError,
  };
}

export function closeCircuit(nowMs: number): Circuit {
  return { state: "closed", failures: 0, openings: 0, openedAtMs: null, retryAtMs: nowMs, lastError: null };
}

/** Returns the state in one word. Half-open means that the next message is a probe. */
export function describeCircuit({ state, retryAtMs }: Circuit, nowMs: number): string {
  return state === "open" && retryAtMs <= nowMs ? "half-open" : state;
}

const FIRST_CEILING_MS = 5_000;
/** An urgent message that could not be sent is tried again in minutes, not in days. */
const MAX_CEILING_MS = 15 * 60_000;
const MIN_DELAY_MS = 1_000;
/** Upper limit for Retry-After: no header may stop a channel for a day. */
const MAX_WAIT_MS = 60 * 60_000;
/** Unsent notifications older than this are dropped. Their channel has long been reported as failing. */
export const MAX_AGE_MS = 3 * 24 * 60 * 60_000;

type DeliveryPlan =
  | { readonly kind: "again"; readonly delayMs: number }
  | { readonly kind: "give-up"; readonly because: "refused" | "too old" };

/**
 * Returns the next step after a failed attempt: full jitter under a doubling ceiling, or the receiver's Retry-After.
 */
export function planDelivery(failed: {
  readonly disposition: Disposition;
  readonly waitMs: number | undefined;
  /** The first attempt is 1. */
  readonly attempt: number;
  /** Time since the message was written. */
  readonly ageMs: number;
  /** 0 to 1, exclusive. */
  readonly random: number;
}): DeliveryPlan {
  if (failed.disposition === "give-up") return { kind: "give-up", because: "refused" };
  if (failed.ageMs > MAX_AGE_MS) return { kind: "give-up", because: "too old" };
  const askedMs = failed.disposition === "wait" ? failed.waitMs : undefined;
  if (askedMs !== undefined) {
    return { kind: "again", delayMs: Math.min(Math.max(askedMs, MIN_DELAY_MS), MAX_WAIT_MS) };
  }
  const ceilingMs = Math.min(FIRST_CEILING_MS * 2 ** Math.min(failed.attempt - 1, 20), MAX_CEILING_MS);
  return { kind: "again", delayMs: Math.max(Math.floor(failed.random * ceilingMs), MIN_DELAY_MS) };
}
