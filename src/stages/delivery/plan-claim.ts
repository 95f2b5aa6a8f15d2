import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { ChannelRate } from "./channel-rate.ts";
import type { Circuit } from "./circuit.ts";

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
export type ClaimPlan =
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
