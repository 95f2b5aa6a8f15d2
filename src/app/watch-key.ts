import type { Database } from "#db/client.ts";
import { recordMissingKey } from "#db/privacy/pseudonym-keys.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import type { PseudonymKeyring } from "./pseudonym-keyring.ts";

const CHECK_EVERY_MS = 60_000;

interface KeyWatchParts {
  readonly keyring: PseudonymKeyring;
  readonly database: Pick<Database, "db">;
  readonly log: Pick<Log, "error" | "info" | "debug">;
  /** Called after the problem has changed, so that the alert about it is written at once. */
  readonly onChange: () => unknown;
}

/**
 * Checks once a minute that this process has the pseudonym key and that its next start will find it. Keeps a problem in
 * the database, where `status` and the alert about it read it. Returns a function that checks at once.
 */
export function watchKey({ keyring, database, log, onChange }: KeyWatchParts, stack: StopStack): () => void {
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
