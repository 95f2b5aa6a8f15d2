import dns from "node:dns";
import type { LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher } from "undici";
import { DeliveryError } from "./delivery-error.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import { refuseAddress, refuseHost } from "./refuse-address.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** `disposition` is `retry` for a name, because it may resolve to another address later. */
function refused(range: string, disposition: "retry" | "give-up"): DeliveryError {
  const text = `the address is not a public one (${range})`;
  return new DeliveryError({ code: "ADDRESS_REFUSED", disposition, text });
}

/** Refuses a name if any of its addresses is refused, because the connection may use any of them. */
export function guardLookup(lookup: LookupFunction, allowPrivateNetworks: boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = typeof found === "string" ? [{ address: found, family: 0 }] : (found ?? []);
      if (error !== null) return callback(error, []);
      for (const { address } of addresses) {
        const range = refuseAddress(address, allowPrivateNetworks);
        if (range !== null) return callback(refused(range, "retry"), []);
      }
      const first = addresses[0];
      if (first === undefined) return callback(refused("no address", "retry"), []);
      return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}

/**
 * Checks a literal address before connecting, and the peer's real address before a byte is sent. TLS starts as a second
 * step over the checked socket, because its first message contains the host name.
 */
export function guardConnector(
  connect: buildConnector.connector,
  allowPrivateNetworks: boolean,
): buildConnector.connector {
  return (options, callback) => {
    const literal = refuseHost(options.hostname, allowPrivateNetworks);
    if (literal !== null) return callback(refused(literal, "give-up"), null);
    const isTls = options.protocol === "https:";
    const hostname = options.hostname.replace(/^\[(.*)\]$/s, "$1");
    const port = options.port === "" ? (isTls ? "443" : "80") : options.port;
    const { servername: _, ...plain } = { ...options, hostname, port, protocol: "http:" };
    connect(plain, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      const range = refuseAddress(socket.remoteAddress ?? "", allowPrivateNetworks);
      if (range !== null) {
        socket.destroy();
        return callback(refused(range, "retry"), null);
      }
      if (!isTls) return callback(null, socket);
      return connect({ ...options, hostname, port, httpSocket: socket }, callback);
    });
  };
}

/** Returns a connector that connects only to addresses that the policy allows, whatever the name or notation. */
export function createGuardedConnector(policy: NetworkPolicy): buildConnector.connector {
  const allowPrivateNetworks = policy.allowPrivateNetworks ?? false;
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    allowH2: false,
    lookup: guardLookup(policy.lookup ?? dns.lookup, allowPrivateNetworks),
    ...(policy.ca === undefined ? {} : { ca: policy.ca }),
  });
  return guardConnector(connect, allowPrivateNetworks);
}

/**
 * Returns an HTTP dispatcher that ignores the environment's proxies and keeps no connection, so that the address of
 * every request is checked.
 */
export function createGuardedDispatcher(policy: NetworkPolicy): Dispatcher {
  return new Agent({ connect: createGuardedConnector(policy), pipelining: 0 });
}
