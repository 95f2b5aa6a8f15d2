import type { Config } from "#config/config.ts";
import { recordMissingKey } from "#db/people/pseudonymise.ts";
import type { JobContext } from "#jobs/context.ts";
import { UsageError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/process.ts";
import { createPseudonymKeyring, type PseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { PseudonymKeyError } from "#people/rules/erasure-guard.ts";

/** The roles whose work needs the pseudonym key. */
const NEEDED_BY = ["ingest", "derive"];

interface KeyringParts extends Pick<JobContext, "database" | "log"> {
  readonly config: Pick<Config, "pseudonymKey" | "keyDir" | "roles">;
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

const CHECK_EVERY_MS = 60_000;

interface KeyWatchParts {
  readonly keyring: PseudonymKeyring;
  readonly database: Pick<JobContext["database"], "db">;
  readonly log: Pick<Log, "error" | "info" | "debug">;
  /** Called after the problem has changed, so that the alert about it is written at once. */
  readonly onChange: () => unknown;
}

/**
 * Checks once a minute that this process has the pseudonym key and that its next start will find it. Keeps a problem in
 * the database, where `status` and the alert about it read it. Returns a function that checks at once.
 */
function watchKey({ keyring, database, log, onChange }: KeyWatchParts, stack: StopStack): () => void {
  let known: string | null = null;
  let checking: Promise<void> | null = null;
  const check = async () => {
    try {
      const problem = await keyring.findProblem();
      if (problem !== null) await recordMissingKey(database.db, problem);
      if (problem === known) return;
      known = problem;
      if (problem === null) log.info({}, "pseudonym key found");
      else log.error({ problem }, "pseudonym key missing");
      onChange();
    } catch (thrown) {
      log.debug({ err: thrown }, "pseudonym key not checked");
    }
  };
  const checkOnce = () => {
    checking ??= check().finally(() => {
      checking = null;
    });
  };
  const timer = setInterval(checkOnce, CHECK_EVERY_MS);
  stack.defer("pseudonym key", () => clearInterval(timer));
  checkOnce();
  return () => {
    if (known === null) checkOnce();
  };
}
