import type { FastifyRequest } from "fastify";
import ipaddr from "ipaddr.js";

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
