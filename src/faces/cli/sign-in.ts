import type { Command } from "commander";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { type Config, toOwnUrl } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { UsageError } from "#lib/errors.ts";
import { escapeText } from "#lib/text.ts";
import { createSignInLink } from "#people/keys/issue-key.ts";
import { createProcessIo, writeJson, writeOut } from "./edge/edge-io.ts";
import { readActor } from "./options/read-options.ts";
import { withStore } from "./store/open-store.ts";
import { NotFoundError, type StoreIo, storeAction, storeCommand } from "./store/store-command.ts";

const HELP = `
The link is valid once and for ten minutes. The session has the rights of a key: of --key, else of the oldest valid admin
key. It ends after 12 hours without use, after seven days (admin: 24 hours), or with its key.

Examples:
  npm run -s longwatch -- sign-in
  npm run -s longwatch -- sign-in --key grafana`;

interface Flags {
  readonly key?: string;
  readonly by?: string;
  readonly json?: true;
}

/** `longwatch sign-in`: prints a link that signs in to the console once. */
export function signInCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("sign-in", HELP, io)
    .option("--key <id or name>", "the key whose rights the session gets (default: the oldest admin key)")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const actor = readActor(read, flags.by);
        read.finish();
        const config = readConfig();
        const url =
          config.http.publicUrl ?? readRuntimeFile(config.dataDir)?.httpUrl ?? toOwnUrl(config.http);
        const made = await withStore(config, (database) =>
          makeLink(database, { url, key: flags.key ?? null, actor }),
        );
        if (flags.json === true) await writeJson(io.stdout, { link: made.link.reveal(), key: made.keyId });
        else await writeOut(io.stdout, `${made.link.reveal()}\n`);
      }),
    );
}

async function makeLink(database: Database, wanted: { url: string; key: string | null; actor: string }) {
  const made = await createSignInLink(database, wanted);
  if (made.kind === "made") return made;
  if (made.kind === "several")
    throw new UsageError([
      `--key "${wanted.key}" is the name of several keys; name one by its id: ${made.keyIds.join(", ")}`,
    ]);
  throw new NotFoundError(
    wanted.key === null
      ? "there is no valid admin key: create one with keys create --role admin"
      : `there is no valid key "${escapeText(wanted.key)}" that may sign in`,
  );
}
