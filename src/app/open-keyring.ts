import type { Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { UsageError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { PseudonymKeyError } from "#stages/privacy/erasure-guard.ts";
import { createPseudonymKeyring, type PseudonymKeyring } from "./pseudonym-keyring.ts";
import { watchKey } from "./watch-key.ts";

/** The roles whose work needs the pseudonym key. */
const NEEDED_BY = ["ingest", "derive"];

interface KeyringParts {
  readonly config: Pick<Config, "pseudonymKey" | "keyDir" | "roles">;
  readonly database: Database;
  readonly log: Log;
  /** Called when the key is found to be missing, and when it is back. */
  readonly onChange: () => unknown;
}

/**
 * Opens the pseudonym key, which the first start creates. A process whose roles do not need the key neither creates nor
 * checks it.
 * @throws {UsageError} if the database was created with a key that is missing
 */
export async function openKeyring(
  { config, database, log, onChange }: KeyringParts,
  stack: StopStack,
): Promise<{ keyring: PseudonymKeyring; checkKey: () => void }> {
  const onCreated = (file: string) =>
    log.info({ file, action: "back up this file apart from the database" }, "pseudonym key created");
  const keyring = createPseudonymKeyring(config, database, { onCreated });
  if (!config.roles.some((role) => NEEDED_BY.includes(role))) return { keyring, checkKey: () => undefined };
  try {
    await keyring.open();
  } catch (thrown) {
    if (!(thrown instanceof PseudonymKeyError)) throw thrown;
    throw new UsageError([thrown.message]);
  }
  return { keyring, checkKey: watchKey({ keyring, database, log, onChange }, stack) };
}
