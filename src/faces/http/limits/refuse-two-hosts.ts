import type { IncomingMessage } from "node:http";
import { Refusal } from "#operations/refusal.ts";

/** Refuses a request with two Host headers (RFC 9112, section 3.2): a proxy in front may have read the other one. */
export function refuseTwoHosts({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): void {
  // Names and values by turns. A request that Fastify injects has no `headersDistinct`.
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === "host");
  if (hosts.length > 1) throw new Refusal(400, { detail: "The request has more than one Host header." });
}
