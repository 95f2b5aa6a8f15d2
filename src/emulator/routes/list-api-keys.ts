import type { Call, EmulatorContext } from "../emulator-context.ts";
import { json, legacyError, type Reply } from "../reply.ts";

const MAX_PAGE = 2_147_483_647;
const MIN_PER_PAGE = 5;
const MAX_PER_PAGE = 1_000;

/** The text of a parameter. The texts of a repeated one are joined, which is no number, so the answer is a refusal. */
function textOf(call: Call, name: string): string | null {
  return call.query.has(name) ? call.query.getAll(name).join() : null;
}

function readInteger(text: string | null, fallback: number): number | undefined {
  if (text === null) return fallback;
  return /^-?\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns one page of the account's keys (platform API spec 4.1). A page size out of range becomes the nearest limit.
 */
export function listApiKeys(context: EmulatorContext, call: Call): Reply {
  const page = readInteger(textOf(call, "page"), 1);
  const perPage = readInteger(textOf(call, "perPage"), MAX_PER_PAGE);
  if (page === undefined || page < 1 || page > MAX_PAGE) {
    return legacyError(
      400,
      "model.invalid",
      "page",
      `The value '${textOf(call, "page")}' is not valid: page must be 1 to ${MAX_PAGE}.`,
    );
  }
  if (perPage === undefined) {
    const rule = `perPage must be ${MIN_PER_PAGE} to ${MAX_PER_PAGE}`;
    return legacyError(
      400,
      "model.invalid",
      "perPage",
      `The value '${textOf(call, "perPage")}' is not valid: ${rule}.`,
    );
  }
  const size = Math.min(Math.max(perPage, MIN_PER_PAGE), MAX_PER_PAGE);
  const { apiKeys } = context.resources;
  return json(200, {
    Items: apiKeys.slice((page - 1) * size, page * size),
    CurrentPage: page,
    TotalItems: apiKeys.length,
    HasMoreItems: page * size < apiKeys.length,
  });
}
