import { type DiskSpace, describeDisk, formatBytes } from "#lib/disk.ts";
import { digest } from "#model/fingerprint.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SelfChange } from "./coverage-alert.ts";

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
