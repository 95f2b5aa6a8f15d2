import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { findApiKeyIds } from "#db/keys/api-keys.ts";
import { withdrawKey } from "#faces/http/keys/issue-key.ts";
import { UsageError } from "#lib/errors.ts";
import { escapeText } from "#lib/escape-text.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor } from "../options/read-actor.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

const HELP = `
Every replica refuses the key from the next request on. Keys that were made to end with it are revoked too. A revoked key
cannot be restored.

Examples:
  npm run -s longwatch -- keys revoke 4f1d22c09b7e
  npm run -s longwatch -- keys revoke grafana --by alice`;

interface Flags {
  readonly by?: string;
  readonly json?: true;
}

export function revokeCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("revoke", "Revoke a key now.", HELP, io)
    .usage("[options] <id or name>")
    .argument("[key]", "the key's id, or its name if no other key has that name")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [typed]) => {
        const actor = readActor(read, flags.by);
        if (typed === undefined) read.mistakes.push("the id or the name of the key is missing");
        read.finish();
        const { id, result } = await withStore(readConfig(), (database) =>
          revoke(database, typed ?? "", actor),
        );
        const ended = typeof result === "string" ? [] : result;
        const said = typeof result === "string" ? "was already revoked; nothing was changed" : "is revoked";
        const also = ended.length === 0 ? "" : ` Keys that end with it are revoked too: ${ended.join(", ")}.`;
        if (flags.json === true)
          await writeJson(io.stdout, { id, result: typeof result === "string" ? result : "revoked", ended });
        else await writeOut(io.stdout, `key ${id} ${said}.${also}\n`);
      }),
    );
}

async function revoke(database: Database, idOrName: string, actor: string) {
  const ids = await findApiKeyIds(database.db, idOrName);
  const [id, ...others] = ids;
  // An id is random, so an equal name is deliberate: the id wins.
  const meant = ids.includes(idOrName) ? idOrName : id;
  if (meant === undefined) throw new NotFoundError(`there is no key "${escapeText(idOrName)}"`);
  if (meant !== idOrName && others.length > 0)
    throw new UsageError([
      `"${idOrName}" is the name of several keys; name one by its id: ${ids.join(", ")}`,
    ]);
  return { id: meant, result: await withdrawKey(database, meant, actor) };
}
