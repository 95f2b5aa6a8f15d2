import { digest } from "#model/fingerprint.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SelfChange } from "./coverage-alert.ts";

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
