import type { Command } from "commander";
import { apiKeyPages } from "../../edge/api-key-pages.ts";
import { ApiKeyListQuery } from "../../edge/contract/api-key-list.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { untilStalled } from "./until-stalled.ts";
import { writeJoinedPages, writeJson } from "./write-json.ts";

interface Flags {
  readonly page?: string;
  readonly perPage?: string;
  readonly pageAll?: true;
}

/** `api-keys list`. */
export function addApiKeys(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("api-keys").description("API keys of the account.");
  addSubcommand(group, "list", "List the account's API keys. The output holds the keys themselves.", [
    "api-keys list",
    "api-keys list --page 2 --per-page 50",
    "api-keys list --page-all",
  ])
    .option("--page <number>", "page to show, from 1 (default 1)")
    .option("--per-page <number>", "keys per page, 5 to 1000 (default 1000)")
    .option("--page-all", "follow all pages and join them")
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
          if (flags.pageAll === true)
            await writeJoinedPages(
              io.stdout,
              "Items",
              untilStalled(apiKeyPages(client.listApiKeys, query), "Items"),
            );
          else await writeJson(io.stdout, await client.listApiKeys(query));
        });
      }),
    );
}
