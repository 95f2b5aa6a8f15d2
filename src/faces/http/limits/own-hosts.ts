import type { FastifyRequest } from "fastify";
import ipaddr from "ipaddr.js";
import { Refusal } from "#operations/refusal.ts";

/** Names that nobody can register, so an attacker cannot make one point to this service. */
const PRIVATE = /^[^.]+$|\.(?:localhost|local|internal)$/;

/**
 * Returns whether a request is to a host of this service. If another host's name suddenly points here (DNS rebinding), a
 * browser treats its pages as of the same origin. Such a page has no valid key, so a request with one is answered under any
 * name. `own` are names of this service. A page may set X-Forwarded-Host to any name, but no page can set Host, so behind a
 * trusted proxy both must be own.
 */
export function createIsOwnHost(
  own: readonly string[],
): (request: Pick<FastifyRequest, "hostname" | "headers">) => boolean {
  const names = new Set(own.map(normalise));
  return ({ hostname, headers }) =>
    [hostname, (headers.host ?? "").replace(/:\d*$/, "")]
      .map(normalise)
      .every((name) => name === "" || names.has(name) || PRIVATE.test(name) || ipaddr.isValid(name));
}

export function unknownHost(): Refusal {
  return new Refusal(421, {
    slug: "unknown-host",
    detail:
      "This service does not know the host name of the request. To open the console under that name, set LONGWATCH_PUBLIC_URL to its address. Requests with a valid key are accepted under any name.",
  });
}

/** Returns the host in lower case, without the brackets of IPv6 and without the dot of the root. */
function normalise(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
}
