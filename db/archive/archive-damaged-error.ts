import { ServiceError } from "#lib/errors.ts";
import type { ArchiveFile } from "./archived-days.ts";

/** Thrown when a file of the archive is missing or is not what the manifest says. */
export class ArchiveDamagedError extends ServiceError {
  override readonly name = "ArchiveDamagedError";
  readonly code = "ARCHIVE_DAMAGED";
  readonly disposition = "give-up";
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  readonly file: ArchiveFile;
  readonly damage: string;

  constructor(file: ArchiveFile, damage: string) {
    super(`the archive file ${file.path} of ${file.day} ${damage}`);
    this.day = file.day;
    this.file = file;
    this.damage = damage;
  }
}
