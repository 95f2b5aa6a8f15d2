import { many } from "#lib/format.ts";
import { digest } from "#model/fingerprint.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SelfChange } from "./coverage-alert.ts";

/** Events of one zone that are held back because the pseudonym key is missing. */
interface HeldBack {
  readonly zoneId: number;
  readonly entries: number;
}

export interface KeyStatus {
  /** The problem of the key that a running process reports; null if there is none. */
  readonly problem: string | null;
  readonly held: readonly HeldBack[];
}

export function keyFingerprint(): string {
  return digest(["self", "pseudonym-key"]);
}

/**
 * Returns what to report about the pseudonym key; null if there is no problem and no open alert. `alert` is the newest
 * of its kind. Held events alone raise no alert: they are judged within a minute after the key is back.
 */
export function assessKey(
  nowMs: number,
  alert: AlertRecord | null,
  { problem, held }: KeyStatus,
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = "critical";
  if (problem === null && (held.length === 0 || !isOpen)) {
    const headline = "The pseudonym key is present again, and no event is held back";
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs: nowMs } : null;
  }
  const cause = problem ?? "The pseudonym key was missing.";
  const headline = `${cause} ${describeHeld(held)}`;
  return { reason: isOpen ? "none" : "first", severity, headline, openedAtMs: nowMs };
}

function describeHeld(held: readonly HeldBack[]): string {
  if (held.length === 0) return "No event is held back yet.";
  const entries = held.reduce((sum, zone) => sum + zone.entries, 0);
  const zones = held.map(({ zoneId }) => zoneId).join(", ");
  return `Longwatch holds back ${many(entries, "entry", "entries")} of ${held.length === 1 ? "zone" : "zones"} ${zones} until the key is present.`;
}
