import { MINUTE_MS } from "../lib/units.ts";
import type { ChannelRate } from "./channel-rate.ts";
import type { Circuit } from "./circuit.ts";

/** Of the rate, kept back for digests. */
const RESERVE = 0.25;

export interface ChannelState extends Circuit {
  /** The rate is spent up to here; epoch ms. */
  readonly spentUntilMs: number;
}

/** nothing: not now. probe: one message. alone: so many, each as it is. together: all that fit into one message. */
export type ClaimPlan =
  | { readonly kind: "nothing" }
  | { readonly kind: "probe" }
  | { readonly kind: "alone"; readonly atMost: number }
  | { readonly kind: "together" };

/** What a channel may be sent next. */
export function planClaim(state: ChannelState, rate: ChannelRate, nowMs: number): ClaimPlan {
  if (state.state === "disabled") return { kind: "nothing" };
  if (state.state === "open") return state.retryAtMs <= nowMs ? { kind: "probe" } : { kind: "nothing" };
  const left = countLeft(state.spentUntilMs, rate, nowMs);
  const reserve = rate.digest === null ? 0 : Math.ceil(rate.perMinute * RESERVE);
  if (left > reserve) return { kind: "alone", atMost: left - reserve };
  return left > 0 && rate.digest !== null ? { kind: "together" } : { kind: "nothing" };
}

/** Messages that the rate still allows now. */
function countLeft(spentUntilMs: number, { perMinute }: ChannelRate, nowMs: number): number {
  const aheadMs = Math.max(spentUntilMs - nowMs, 0);
  return Math.max(Math.floor(perMinute - (aheadMs * perMinute) / MINUTE_MS + 1e-6), 0);
}

/** Up to when the rate is spent once so many more are sent. */
export function spend(spentUntilMs: number, { perMinute }: ChannelRate, sent: number, nowMs: number): number {
  return Math.max(spentUntilMs, nowMs) + (sent * MINUTE_MS) / perMinute;
}
