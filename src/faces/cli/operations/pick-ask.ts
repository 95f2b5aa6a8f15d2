/** Asks an operation here or at a running service, page by page. */

import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Config } from "#config/config.ts";
import { isObject } from "#lib/json.ts";
import type { AskOperation, Operation } from "#operations/operation.ts";
import type { StoreIo } from "../store/store-command.ts";

/**
 * Returns how operations are run: on the service that the configuration names, else on the database. Either way is loaded
 * for the first operation, so that help and mistakes need neither the HTTP client nor the code of the searches. When
 * `stopped` aborts, a request to the service ends.
 */
export function pickAsk(
  config: Config,
  { clock }: Pick<StoreIo, "clock">,
  actor: string | null,
  stopped?: AbortSignal,
): AskOperation {
  return async (operation, input) => {
    if (config.remote !== null) {
      const { askRemotely } = await import("./ask-remotely.ts");
      return askRemotely(config.remote, stopped)(operation, input);
    }
    const { askLocally } = await import("./ask-locally.ts");
    return askLocally({ config, clock, actor })(operation, input);
  };
}

/**
 * Reads pages of a list until `limit` items are there or the list ends. Returns them as one page. Of what else the
 * pages say, lists are joined, and the first page counts for the rest.
 */
export async function readPages(
  ask: AskOperation,
  operation: Operation,
  input: Readonly<Record<string, unknown>>,
  limit: number,
): Promise<Record<string, unknown>> {
  const most = readMost(operation);
  const items: unknown[] = [];
  let about: Record<string, unknown> = {};
  let after = input["after"];
  for (;;) {
    const size = String(Math.min(most, limit - items.length));
    const page = await ask(operation, { ...input, limit: size, ...(after === undefined ? {} : { after }) });
    const { items: more, next, ...said } = isObject(page) ? page : {};
    about = join(about, said);
    items.push(...(Array.isArray(more) ? more : []));
    if (typeof next !== "string") return { items, next: null, ...about };
    if (items.length >= limit) return { items, next, ...about };
    if (next === after) throw new Error("the list does not end: a page names itself as the next one");
    after = next;
  }
}

function join(known: Record<string, unknown>, more: Record<string, unknown>): Record<string, unknown> {
  const joined = Object.entries(more).map(([name, value]) => {
    const list = known[name];
    if (!Array.isArray(list) || !Array.isArray(value)) return [name, list ?? value] as const;
    return [
      name,
      [...list, ...value.filter((one) => !list.some((own) => isDeepStrictEqual(own, one)))],
    ] as const;
  });
  return { ...known, ...Object.fromEntries(joined) };
}

/** Returns the size of the largest page that the operation gives. */
function readMost({ input }: Operation): number {
  const { wire } = z.globalRegistry.get((input as z.ZodObject).shape["limit"] as z.ZodType) ?? {};
  return typeof wire?.["maximum"] === "number" ? wire["maximum"] : 100;
}
