/** The keys of alerts, notifications, series and attackers. */
import { createHash } from "node:crypto";
import type { REASONS, SourceKind } from "./kinds.ts";

/** The subject of an alert. Two alerts of one subject are never open together. */
export interface AlertSubject {
  readonly kind: string;
  /** Null if the alert is about Longwatch itself. */
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  /** Distinguishes the incidents of a zone. */
  readonly incident?: string | undefined;
}

/**
 * Returns 32 hex digits. `new-rule` counts as `spike`, because a new rule's burst may become a spike within one
 * episode. The rule id distinguishes incidents from rules. JSON separates the members, so that no hostile rule id can look
 * like another member.
 */
export function fingerprintOf({ kind, zoneId, ruleId, incident = "" }: AlertSubject): string {
  const what = kind === "new-rule" || kind === "sources" ? "spike" : kind;
  return digest([what, zoneId, ruleId, ...(incident === "" ? [] : [incident])]);
}

/** Returns a short stable name for some values. */
export function digest(values: readonly (string | number | null)[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("hex").slice(0, 32);
}

/**
 * Returns the key that all transitions of one episode share, reopenings included. Receivers group and resolve by it.
 */
export function episodeKeyOf(alert: { readonly fingerprint: string; readonly firedAtMs: number }): string {
  return digest([alert.fingerprint, alert.firedAtMs]);
}

const PLAIN_CHANNEL = /^[\w-]{1,64}$/;

/**
 * Returns the key of one transition on one channel, which is the same at every attempt. It names the reason too, because
 * the number is given out again if a promoted server lacks the transition. It has at most 125 characters of `\w-`. It
 * contains no dot, because signed webhooks join their id with dots.
 */
export function notificationKeyOf({ dedupeKey, transition, reason }: Transition, channel: string): string {
  const name = PLAIN_CHANNEL.test(channel) ? channel : digest([channel]);
  return `${dedupeKey}-${transition}-${reason}-${name}`;
}

interface Transition {
  /** The key of the episode. */
  readonly dedupeKey: string;
  readonly transition: number;
  readonly reason: (typeof REASONS)[number];
}

/** The events of one rule in one zone. */
export interface SeriesKey {
  readonly zoneId: number;
  readonly ruleId: string;
}

/** Returns the key as a text, for maps and sets. */
export function keyOf({ zoneId, ruleId }: SeriesKey): string {
  return `${zoneId}/${ruleId}`;
}

/** A key that has not reached its line for this many minutes attacks no more. */
export const QUIET_MINUTES = 30;

/** Returns the name of a key within its zone. */
export function attackerIdOf({ kind, key }: { readonly kind: SourceKind; readonly key: string }): string {
  return `${kind}=${key}`;
}

/** Returns whether the attacker reached its line within the half hour that ends with `minute`. */
export function isActive({ lastFiredAt }: { readonly lastFiredAt: number }, minute: number): boolean {
  return minute + 1 - lastFiredAt < QUIET_MINUTES;
}
