import type { IncomingMessage } from "node:http";
import { Refusal } from "./refusal.ts";

/** Refuses a request with two Host headers (RFC 9112, section 3.2): a proxy in front may have read the other one. */
export function refuseTwoHosts({ headersDistinct }: Pick<IncomingMessage, "headersDistinct">): void {
  if ((headersDistinct["host"]?.length ?? 0) > 1)
    throw new Refusal(400, { detail: "The request has more than one Host header." });
}
