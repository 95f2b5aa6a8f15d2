import type { Command } from "commander";
import { listApiKeys } from "../../../db/queries/api-keys.ts";
import type { Config } from "../../config.ts";
import { toKeyItem } from "../../http/key-item.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store-command.ts";
import { describeKey } from "./describe-key.ts";

const MAX_SHOWN = 1_000;

const HELP = `
The newest in front, at most ${MAX_SHOWN}. The keys themselves are kept nowhere and cannot be shown.

Examples:
  npm run -s longwatch -- keys list
  npm run -s longwatch -- keys list --all --json`;

interface Flags {
  readonly all?: true;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List keys.", HELP, io)
    .option("--all", "also those that are revoked or expired")
    .option("--json", "as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        read.finish();
        const query = { beforeId: null, withDead: flags.all === true, limit: MAX_SHOWN };
        const keys = await withStore(readConfig(), ({ db }) => listApiKeys(db, query));
        if (flags.json === true) await writeJson(io.stdout, { keys: keys.map(toKeyItem) });
        else await writeOut(io.stdout, keys.length === 0 ? "No keys.\n" : keys.map(describeKey).join(""));
      }),
    );
}
