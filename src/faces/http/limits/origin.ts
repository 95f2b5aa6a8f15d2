/** Where a request comes from: its host, its origin and its network. */
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

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Refuses a request that another site's page makes a browser send with the session's cookie. SameSite=Strict alone
 * would admit pages of other ports and subdomains.
 * @throws {Refusal} 403
 */
export function refuseOtherOrigins(request: FastifyRequest): void {
  if (READS.has(request.method) || isSameOrigin(request) === true) return;
  throw new Refusal(403, {
    slug: "other-origin",
    detail:
      "With a session's cookie, a request that changes something must come from this origin. Programs send the header AccessKey instead.",
  });
}

/**
 * Returns whether the page that sends the request is of this origin; null for a program that names no origin. Browsers
 * send Sec-Fetch-Site if they trust the origin (TLS or loopback), and Origin with every POST, PUT, PATCH and DELETE.
 */
export function isSameOrigin({
  headers,
  protocol,
  host,
}: Pick<FastifyRequest, "headers" | "protocol" | "host">): boolean | null {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  const { origin } = headers;
  return origin === undefined ? null : origin === URL.parse(`${protocol}://${host}`)?.origin;
}

const IPV6_NETWORK_BYTES = 8;

/**
 * Returns the network that a client cannot easily change: its IPv4 address, or the /64 of its IPv6 address, because a
 * host may use any address of that network. Behind trusted proxies it is the forwarded address; if that is not an
 * address, the proxy's own.
 */
export function networkOf({ ip, socket }: Pick<FastifyRequest, "ip" | "socket">): string {
  const given = ipaddr.isValid(ip) ? ip : (socket.remoteAddress ?? "");
  if (!ipaddr.isValid(given)) return "unknown";
  const address = ipaddr.process(given);
  if (address instanceof ipaddr.IPv4) return address.toString();
  const bytes = address.toByteArray().map((byte, at) => (at < IPV6_NETWORK_BYTES ? byte : 0));
  return `${ipaddr.fromByteArray(bytes).toString()}/64`;
}
