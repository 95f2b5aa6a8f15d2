import type { Command } from "commander";
import { writeAuditEntry } from "../../../db/queries/audit-entries.ts";
import { countErasuresInEffect } from "../../../db/queries/erasures.ts";
import { readKeyId } from "../../../db/queries/pseudonym-keys.ts";
import { waitForIngest } from "../../../db/queries/tombstones.ts";
import { inTransaction } from "../../../db/transaction.ts";
import type { Config } from "../../config.ts";
import { DAY_MS } from "../../coverage/horizon.ts";
import { UsageError } from "../../errors.ts";
import { INGEST_DAYS } from "../../privacy/retention.ts";
import { rotateKey } from "../../pseudonym-keyring.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../open-store.ts";
import { readActor } from "../read-actor.ts";
import { readServiceClock } from "../service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store-command.ts";

const HELP = `
What was replaced before can then no longer be traced to an address by anyone, nor be found for an erasure. With
LONGWATCH_PSEUDONYM_KEY set, that one is put in use: change it first, for every process. Refused while an erasure is
unfinished or its tombstone still keeps events out: those are made with the key as well. Exit code 0; 2 where refused.

Examples:
  npm run -s longwatch -- privacy rotate-key --yes --by alice`;

interface Flags {
  readonly yes?: true;
  readonly by?: string;
  readonly json?: true;
}

export function rotateKeyCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("rotate-key", "Put a new key in use; what the old one made is unlinkable.", HELP, io)
    .option("--yes", "yes, it cannot be undone (required)")
    .option("--by <name>", "who does it (default: who runs this)")
    .option("--json", "as JSON")
    .action(
      storeAction<Flags>(io, async ({ yes, by, json }, read) => {
        if (yes !== true) read.wrong("yes", undefined, "given: it cannot be undone");
        const actor = readActor(read, by);
        read.finish();
        const config = readConfig();
        const key = await withStore(config, async (database) => {
          const nowMs = (await readServiceClock(database, io.clock))();
          return inTransaction(database, async ({ tx }) => {
            await waitForIngest(tx);
            const inEffect = await countErasuresInEffect(tx, nowMs - INGEST_DAYS * DAY_MS);
            if (inEffect > 0)
              throw new UsageError([
                `${inEffect} erasure(s) are in effect or unfinished: wait ${INGEST_DAYS} days`,
              ]);
            const before = await readKeyId(tx);
            const rotated = await rotateKey(config, tx, nowMs);
            if (rotated.id === before)
              throw new UsageError(["LONGWATCH_PSEUDONYM_KEY is the key in use: change it first"]);
            const details = { before, after: rotated.id };
            await writeAuditEntry(tx, {
              actor,
              action: "pseudonym-key.rotated",
              subject: "pseudonym key",
              details,
            });
            return rotated;
          });
        });
        if (json === true) await writeJson(io.stdout, { keyId: key.id });
        else await writeOut(io.stdout, `key ${key.id} is in use.\n`);
      }),
    );
}
