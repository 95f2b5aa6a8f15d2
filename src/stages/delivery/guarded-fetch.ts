import { Readable } from "node:stream";
import { fetch, type RequestInit } from "undici";
import { readBody } from "#lib/http.ts";
import { createGuardedDispatcher } from "./guarded-dispatcher.ts";
import type { NetworkPolicy } from "./network-policy.ts";

const MAX_BYTES = 1_048_576;

/** Returns a fetch that connects only to addresses that the policy allows. An answer larger than 1 MiB fails. */
export function createGuardedFetch(policy: NetworkPolicy) {
  const dispatcher = createGuardedDispatcher(policy);
  return async (url: string, options: object): Promise<Response> => {
    const { body, status, headers } = await fetch(url, { ...(options as RequestInit), dispatcher });
    const bytes = body === null ? "" : await readBody(Readable.fromWeb(body), MAX_BYTES);
    // Some statuses may have no body, not even an empty one.
    return new Response(bytes.length === 0 ? null : String(bytes), { status, headers: [...headers] });
  };
}
