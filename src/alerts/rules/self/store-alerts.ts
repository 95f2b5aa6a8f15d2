/** Alerts about the database, the disk, the archive and the pseudonym key. */

import { type DiskSpace, describeDisk, formatBytes } from "#lib/disk.ts";
import { many } from "#lib/format.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import type { AlertRecord } from "../alert-record.ts";
import { buildSelfMessage } from "../message/self-message.ts";
import type { SelfChange } from "./coverage-alert.ts";

/** The database is down, does not answer or has no disk space left. */
export interface DatabaseTrouble {
  /** Epoch ms. */
  readonly sinceMs: number;
  /** The problem and its consequence, in one line. */
  readonly headline: string;
}

/**
 * Returns the message about a database that cannot store the alert itself: that the database failed, or with
 * `resolvedAtMs` that it works again. The alert has no row, so it has no number.
 */
export function buildDatabaseMessage(trouble: DatabaseTrouble, resolvedAtMs: number | null): AlertMessage {
  const isOver = resolvedAtMs !== null;
  return buildSelfMessage({
    alertId: 0,
    fingerprint: digest(["self", "database"]),
    reason: isOver ? "resolved" : "first",
    severity: "critical",
    zoneId: null,
    headline: isOver ? "The database works again" : trouble.headline,
    alert: {
      state: isOver ? "resolved" : "firing",
      transition: isOver ? 2 : 1,
      firedAtMs: trouble.sinceMs,
      resolvedAtMs,
      spikeId: null,
      transitions: [],
    },
  });
}

/** Counts and alerts, beside events and records. */
const OTHER_TABLES = 1.25;
/** The alert stays open until clearly more is free: a value that swings around the limit raises one alert. */
const CLEARLY = 1.2;

export function diskFingerprint(): string {
  return digest(["self", "disk"]);
}

/**
 * Returns the alert for a disk that has less free than a day of events takes; null if there is nothing to say and nothing
 * open. `alert` is the newest of its kind.
 */
export function assessDisk(
  nowMs: number,
  alert: AlertRecord | null,
  space: DiskSpace,
  { dayBytes, logBytes }: { readonly dayBytes: number; readonly logBytes: number },
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const neededBytes = dayBytes * OTHER_TABLES + logBytes;
  const severity = "error";
  const openedAtMs = nowMs;
  if (space.freeBytes >= neededBytes * (isOpen ? CLEARLY : 1)) {
    const headline = `The disk has enough free space again: ${describeDisk(space)}`;
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs } : null;
  }
  const headline = `The disk may be full within a day: ${describeDisk(space)}. One more day of events may take ${formatBytes(neededBytes)}. Free space or enlarge the disk`;
  return { reason: isOpen ? "none" : "first", severity, headline, openedAtMs };
}

export function archiveFingerprint(): string {
  return digest(["self", "archive"]);
}

/** A file that is missing or is not what was archived. */
interface DamagedFile {
  readonly zoneId: number;
  readonly day: string;
  readonly path: string;
  readonly damage: string;
  /** Epoch ms. */
  readonly damagedAt: number;
}

/** Returns the report about damaged files of the archive; null if there is nothing. `alert` is the newest of its kind. */
export function assessArchive(
  nowMs: number,
  alert: AlertRecord | null,
  files: readonly DamagedFile[],
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = "error";
  const [first] = files;
  if (first === undefined) {
    const headline = "Every file of the archive that is in use is whole again";
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs: nowMs } : null;
  }
  const others = files.length === 1 ? "" : ` ${files.length - 1} more files are damaged.`;
  const headline = `The archive is damaged: the file ${first.path} of ${first.day} ${first.damage}. Searches of that day of zone ${first.zoneId} fail.${others} Restore the file from the bucket or a backup`;
  return { reason: isOpen ? "none" : "first", severity, headline, openedAtMs: first.damagedAt };
}

/** Events of one zone that are held back because the pseudonym key is missing. */
interface HeldBack {
  readonly zoneId: number;
  readonly entries: number;
}

interface KeyStatus {
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
