import type { FastifyRequest } from "fastify";
import ipaddr from "ipaddr.js";

const IPV6_NETWORK_BYTES = 8;

/**
 * What one client can hardly leave: its IPv4 address, or the /64 that an IPv6 host may pick any address from. Behind
 * trusted proxies it is what they pass on; where that is no address, the proxy's own.
 */
export function networkOf({ ip, socket }: Pick<FastifyRequest, "ip" | "socket">): string {
  const given = ipaddr.isValid(ip) ? ip : (socket.remoteAddress ?? "");
  if (!ipaddr.isValid(given)) return "unknown";
  const address = ipaddr.process(given);
  if (address instanceof ipaddr.IPv4) return address.toString();
  const bytes = address.toByteArray().map((byte, at) => (at < IPV6_NETWORK_BYTES ? byte : 0));
  return `${ipaddr.fromByteArray(bytes).toString()}/64`;
}
