import { formatDuration, many, showTime } from "#lib/format.ts";
import { cutText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { digest } from "#model/fingerprint.ts";
import { gravestNotified } from "../alert-history.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SignedSilence } from "../silence.ts";
import type { SelfChange } from "./coverage-alert.ts";

/** The end of a silence is announced this long before, or a quarter of its length before if that is less. */
const NOTICE_MS = 15 * MINUTE_MS;
const NAMED = 3;
const HEADLINE_CHARS = 120;
const REASON_CHARS = 100;

export function silenceEndFingerprint(id: number): string {
  return digest(["self", "silence.end", id]);
}

export function hiddenFingerprint(id: number): string {
  return digest(["self", "silence.hidden", id]);
}

/** An alert that a silence mutes. The headline is hostile text. */
export interface MutedFiring {
  readonly id: number;
  readonly headline: string | null;
  readonly record: AlertRecord;
}

/** Returns whether the silence has kept from every channel that the alert is critical. */
function isHiddenCritical({ record }: MutedFiring, { id }: Pick<SignedSilence, "id">): boolean {
  const isMuted = record.transitions.some(
    ({ silencedBy, severity }) => silencedBy === id && severity === "critical",
  );
  return isMuted && gravestNotified(record) !== "critical";
}

/**
 * Returns what to report about the end of a silence that mutes firing alerts; null if there is nothing to report and no
 * open alert. `alert` is the newest of its kind.
 */
export function assessSilenceEnd(
  nowMs: number,
  alert: AlertRecord | null,
  silence: SignedSilence,
  muted: readonly MutedFiring[],
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const { startsAtMs, expiresAtMs } = silence;
  const leftMs = expiresAtMs - nowMs;
  const isSoon = leftMs > 0 && leftMs <= Math.min(NOTICE_MS, (expiresAtMs - startsAtMs) / 4);
  const facts = { severity: "info", openedAtMs: nowMs } as const;
  if (isSoon && muted.length > 0) {
    const headline = `${nameSilence(silence)} ends in ${formatDuration(leftMs)}. ${many(muted.length, "alert")} that it mutes will notify again: ${listAlerts(muted)}`;
    return { ...facts, reason: isOpen ? "none" : "first", headline };
  }
  if (!isOpen) return null;
  const why =
    leftMs <= 0
      ? "has ended"
      : isSoon
        ? "mutes no firing alert any more"
        : `now ends ${showTime(expiresAtMs)} UTC`;
  return { ...facts, reason: "resolved", headline: `${nameSilence(silence)} ${why}` };
}

/**
 * Returns what to report about critical alerts that a silence has hidden; null if there is nothing to report and no open
 * alert. The alert stays open until the silence ends.
 */
export function assessHidden(
  nowMs: number,
  alert: AlertRecord | null,
  silence: SignedSilence,
  muted: readonly MutedFiring[],
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const facts = { severity: "warning", openedAtMs: nowMs } as const;
  if (silence.expiresAtMs <= nowMs) {
    const headline = `${nameSilence(silence)} has ended, and it hides no critical alert any more`;
    return isOpen ? { ...facts, reason: "resolved", headline } : null;
  }
  const hidden = muted.filter((one) => isHiddenCritical(one, silence));
  if (hidden.length === 0) return null;
  const headline = `${nameSilence(silence)} hides ${many(hidden.length, "critical alert")} that no channel was notified of, until ${showTime(silence.expiresAtMs)} UTC: ${listAlerts(hidden)}`;
  return { ...facts, reason: isOpen ? "none" : "first", headline };
}

/** `Silence 3 of alice (load test)`. */
function nameSilence({ id, createdBy, reason }: SignedSilence): string {
  return `Silence ${id} of ${createdBy} (${cutText(reason, REASON_CHARS)})`;
}

function listAlerts(muted: readonly MutedFiring[]): string {
  const named = muted
    .slice(0, NAMED)
    .map(({ id, headline }) => `alert ${id}, ${cutText(headline ?? "unreadable", HEADLINE_CHARS)}`);
  const more = muted.length - named.length;
  return `${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
