import { z } from "zod";
import { isObject } from "#lib/is-object.ts";
import type { Operation } from "#operations/operation.ts";
import type { AskOperation } from "./operation-command.ts";

/** Reads pages of a list until `limit` items are there or the list ends. Returns them as one page, with what else the last page says. */
export async function readPages(
  ask: AskOperation,
  operation: Operation,
  input: Readonly<Record<string, unknown>>,
  limit: number,
): Promise<Record<string, unknown>> {
  const most = readMost(operation);
  const items: unknown[] = [];
  let after = input["after"];
  for (;;) {
    const size = String(Math.min(most, limit - items.length));
    const page = await ask(operation, { ...input, limit: size, ...(after === undefined ? {} : { after }) });
    const { items: more, next, ...rest } = isObject(page) ? page : {};
    items.push(...(Array.isArray(more) ? more : []));
    if (typeof next !== "string") return { items, next: null, ...rest };
    if (items.length >= limit) return { items, next, ...rest };
    after = next;
  }
}

/** Returns the size of the largest page that the operation gives. */
function readMost({ input }: Operation): number {
  const { wire } = z.globalRegistry.get((input as z.ZodObject).shape["limit"] as z.ZodType) ?? {};
  return typeof wire?.["maximum"] === "number" ? wire["maximum"] : 100;
}
