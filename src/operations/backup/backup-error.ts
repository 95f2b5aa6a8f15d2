import { type Disposition, ServiceError } from "#lib/errors.ts";

/** Thrown for a backup that cannot be made or restored. Its message is written for the operator. */
export class BackupError extends ServiceError {
  override readonly name = "BackupError";
  readonly code = "BACKUP";
  readonly disposition: Disposition = "give-up";
}
