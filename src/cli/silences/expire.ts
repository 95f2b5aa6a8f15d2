import type { Command } from "commander";
import { writeAuditEntry } from "../../../db/queries/audit-entries.ts";
import { expireSilence } from "../../../db/queries/silences.ts";
import { inTransaction } from "../../../db/transaction.ts";
import type { Config } from "../../config.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../not-found-error.ts";
import { withStore } from "../open-store.ts";
import { readActor } from "../read-actor.ts";
import { readRowId } from "../read-row-id.ts";
import { readServiceClock } from "../service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store-command.ts";

const HELP = `
What still goes on and was held back is told when alerts are next raised.

Examples:
  npm run -s longwatch -- silences expire 3
  npm run -s longwatch -- silences expire 3 --by alice`;

interface Flags {
  readonly by?: string;
  readonly json?: true;
}

export function expireCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("expire", "End a silence now.", HELP, io)
    .usage("[options] <id>")
    .argument("[id]", "the silence's number")
    .option("--by <name>", "who does it (default: who runs this)")
    .option("--json", "as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [typed]) => {
        const id = readRowId(read, typed, "silence");
        const actor = readActor(read, flags.by);
        read.finish();
        const result = await withStore(readConfig(), async (database) => {
          const nowMs = (await readServiceClock(database, io.clock))();
          return inTransaction(database, async ({ tx }) => {
            const ended = await expireSilence(tx, id, nowMs);
            const entry = { actor, action: "silence.expired", subject: `silence ${id}`, details: {} };
            if (ended === "expired") await writeAuditEntry(tx, entry);
            return ended;
          });
        });
        if (result === "unknown") throw new NotFoundError(`there is no silence ${id}`);
        const said = result === "expired" ? "is over now" : "was over already: nothing was changed";
        if (flags.json === true) await writeJson(io.stdout, { id, result });
        else await writeOut(io.stdout, `silence #${id} ${said}.\n`);
      }),
    );
}
