import type { Command } from "commander";
import { apiKeyPages } from "#adapters/edge/account.ts";
import { ApiKeyListQuery } from "#adapters/edge/contract/account.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { untilStalled } from "./until-stalled.ts";
import { writeJoinedPages, writeJson } from "./write-json.ts";

interface Flags {
  readonly page?: string;
  readonly perPage?: string;
  readonly pageAll?: true;
  readonly reveal?: true;
}

const SHOWN_CHARS = 4;
/** A shorter key is masked completely, because four characters would reveal too much of it. */
const LEAST_CHARS = 16;

/** Masks the key. The first characters stay, so that people can distinguish keys. */
function maskKey<Item extends { readonly Key: string }>(item: Item): Item {
  const shown = item.Key.length < LEAST_CHARS ? "" : item.Key.slice(0, SHOWN_CHARS);
  return { ...item, Key: `${shown}********` };
}

/** `api-keys list`. */
export function addApiKeys(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("api-keys").description("API keys of the account.");
  addSubcommand(group, "list", "List the account's API keys. Without --reveal each key is masked.", [
    "api-keys list",
    "api-keys list --reveal",
    "api-keys list --page 2 --per-page 50",
    "api-keys list --page-all",
  ])
    .option("--page <number>", "page to show, from 1 (default 1)")
    .option("--per-page <number>", "keys per page, 5 to 1000 (default 1000)")
    .option("--page-all", "follow all pages and join them")
    .option("--reveal", "print the keys unmasked")
    .action(
      edgeAction<Flags>(setup, async (flags, { read, io, call }) => {
        const page = read.integer("page", flags.page, "a whole number");
        const perPage = read.integer("per-page", flags.perPage, "a whole number");
        const query = {
          ...(page === undefined ? {} : { page }),
          ...(perPage === undefined ? {} : { perPage }),
        };
        read.check(ApiKeyListQuery, query);
        await call(async (client) => {
          const list: typeof client.listApiKeys = async (...asked) => {
            const page = await client.listApiKeys(...asked);
            return flags.reveal === true ? page : { ...page, Items: page.Items.map(maskKey) };
          };
          if (flags.pageAll === true)
            await writeJoinedPages(io.stdout, "Items", untilStalled(apiKeyPages(list, query), "Items"));
          else await writeJson(io.stdout, await list(query));
        });
      }),
    );
}
