/** The address of a receiver, and the networks to which Longwatch may connect. */

import dns from "node:dns";
import type { LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { type ConnectionOptions, createSecureContext } from "node:tls";
import ipaddr from "ipaddr.js";
import { Agent, buildConnector, type Dispatcher, fetch, type RequestInit } from "undici";
import { UsageError } from "#lib/errors.ts";
import { readBody } from "#lib/http.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { DeliveryError } from "./delivery-error.ts";

/** The settings that allow private addresses: for one channel in the configuration file, and for all channels. */
const ALLOWED_BY = "allow_private_networks, LONGWATCH_ALLOW_PRIVATE_WEBHOOKS";

/** A receiver of POST requests. Only the origin of its URL may be shown, because anyone with the rest can post. */
export interface Endpoint {
  readonly origin: string;
  /** The origin without its scheme, for messages. */
  readonly host: string;
  /** Path and query. */
  readonly path: Secret;
  readonly dispatcher: Dispatcher;
}

/** Returns the mistake of a setting that sends texts readably, unless private addresses are allowed. */
export function findReadable(
  setting: string,
  isReadable: boolean,
  { allowPrivateNetworks = false }: NetworkPolicy,
): string[] {
  return isReadable && !allowPrivateNetworks
    ? [`${setting} is allowed only if private addresses are allowed (${ALLOWED_BY})`]
    : [];
}

/** Returns the reasons for which nothing would be sent to this URL. No reason shows more of the URL than its host. */
export function findUrlMistakes(text: string, allowPrivateNetworks: boolean): string[] {
  const url = URL.parse(text);
  if (url === null) return ["is not a URL"];
  const isPlain = url.protocol !== "https:" && !(allowPrivateNetworks && url.protocol === "http:");
  const mistakes = findReadable("must be https; plain http", isPlain, {});
  const range = refuseHost(url.hostname, allowPrivateNetworks);
  if (url.username !== "" || url.password !== "") mistakes.push("must not hold a user or password");
  if (range !== null) mistakes.push(`${url.hostname} is not a public address (${range})`);
  return mistakes;
}

/**
 * Checks the URL before anything is sent. Host names are checked again when they are resolved. `known` are mistakes of
 * the same channel that the caller has found, without the channel's name; they are thrown together with those of the
 * URL.
 * @throws {UsageError} naming the channel or destination, and no more of the URL than its host
 */
export function openEndpoint(
  name: string,
  url: Secret,
  policy: NetworkPolicy,
  known: readonly string[] = [],
  owner: "channel" | "destination" = "channel",
): Endpoint {
  const found = findUrlMistakes(url.reveal(), policy.allowPrivateNetworks ?? false);
  const mistakes = [...known, ...found.map((mistake) => `url: ${mistake}`)];
  if (mistakes.length > 0) throw new UsageError(mistakes.map((mistake) => `${owner} ${name}: ${mistake}`));
  const parsed = new URL(url.reveal());
  return {
    origin: parsed.origin,
    host: parsed.host,
    path: createSecret(`${parsed.pathname}${parsed.search}`),
    dispatcher: createGuardedDispatcher(policy),
  };
}

/** Returns the same receiver at a path below, with an extended query. The caller escapes the path. */
export function extendEndpoint(
  endpoint: Endpoint,
  below: string,
  query: Readonly<Record<string, string>> = {},
): Endpoint {
  const url = new URL(`${endpoint.origin}${endpoint.path.reveal()}`);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${below}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return { ...endpoint, path: createSecret(`${url.pathname}${url.search}`) };
}

/** The addresses that a channel may connect to. */
export interface NetworkPolicy {
  /** Admits private, loopback, unique-local and carrier-grade-NAT addresses and plain http. Default false. */
  readonly allowPrivateNetworks?: boolean;
  /** Certificate authorities in PEM that are trusted instead of the public ones. */
  readonly ca?: string;
  /** A function like `dns.lookup`, which is the default. */
  readonly lookup?: LookupFunction;
}

const PRIVATE = new Set<string>(["private", "loopback", "uniqueLocal", "carrierGradeNat"]);
/** Instance metadata and platform agents of the large clouds. They serve credentials, so no setting allows them. */
const METADATA = new Set([
  "169.254.169.254",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
]);

/**
 * Returns the class for which an address is refused ("loopback", "metadata", ...), or null if connecting is allowed.
 * Only global unicast is allowed. Addresses that contain another one (mapped, 6to4, Teredo, NAT64) are refused as such;
 * if private networks are allowed, mapped and NAT64 addresses are judged by the address inside.
 */
export function refuseAddress(address: string, allowPrivateNetworks: boolean): string | null {
  const bare = address.replace(/%.*$/s, "");
  if (!ipaddr.isValid(bare)) return "not an address";
  const parsed = ipaddr.parse(bare);
  const range: string = parsed.range();
  if (METADATA.has(parsed.toString())) return "metadata";
  if (allowPrivateNetworks && PRIVATE.has(range)) return null;
  if (parsed instanceof ipaddr.IPv4) return range === "unicast" ? null : range;
  if (allowPrivateNetworks && (range === "ipv4Mapped" || range === "rfc6052")) {
    return refuseAddress(parsed.toByteArray().slice(-4).join("."), true);
  }
  if (range !== "unicast") return range;
  // Only 2000::/3 is assigned to public IPv6; addresses outside, such as ::a.b.c.d, are not public.
  return ((parsed.parts[0] ?? 0) & 0xe000) === 0x2000 ? null : "not global";
}

/** Returns the same for a name that means loopback on every machine: `localhost` and the names below it (RFC 6761). */
export function refuseLocalName(host: string, allowPrivateNetworks: boolean): string | null {
  return !allowPrivateNetworks && /(?:^|\.)localhost\.?$/i.test(host) ? "loopback" : null;
}

/**
 * Returns the same for the host of a URL, in any notation of an address. Null also for a name, which is judged when it
 * is resolved.
 */
export function refuseHost(host: string, allowPrivateNetworks: boolean): string | null {
  const bare = host.replace(/^\[(.*)\]$/s, "$1").replace(/\.$/, "");
  return ipaddr.isValid(bare) ? refuseAddress(bare, allowPrivateNetworks) : null;
}

/** Returns why nothing would be sent to this host, which is a name or an address. */
export function findHostMistakes(host: string, { allowPrivateNetworks = false }: NetworkPolicy): string[] {
  const range = refuseHost(host, allowPrivateNetworks) ?? refuseLocalName(host, allowPrivateNetworks);
  return range === null ? [] : [`${host} is not a public address (${range})`];
}

/**
 * Returns the options of a TLS connection: the authorities that it trusts, and the certificate that it shows with its
 * private key, both in one PEM text.
 */
export function toTlsOptions({ ca }: NetworkPolicy, own: Secret | undefined): ConnectionOptions {
  const pem = own?.reveal();
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(pem === undefined ? {} : { cert: pem, key: pem }),
    minVersion: "TLSv1.2",
  };
}

/** Returns what is wrong with the certificate that a connection would show. */
export function findCertificateMistakes(own: Secret | undefined): string[] {
  try {
    createSecureContext(toTlsOptions({}, own));
    return [];
  } catch {
    return ["client_certificate: must hold a certificate and its private key in PEM"];
  }
}

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
 * Returns an address of a host that the policy allows. The host is a name or an address.
 * @throws {DeliveryError} for a host that it refuses
 */
export function resolveHost(
  host: string,
  { allowPrivateNetworks = false, lookup }: NetworkPolicy,
): Promise<string> {
  const literal = refuseHost(host, allowPrivateNetworks);
  if (literal !== null) return Promise.reject(refused(literal, "give-up"));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  guardLookup(lookup ?? dns.lookup, allowPrivateNetworks)(host, {}, (error, address) =>
    error === null && typeof address === "string" ? resolve(address) : reject(error),
  );
  return promise;
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
function createGuardedDispatcher(policy: NetworkPolicy): Dispatcher {
  return new Agent({ connect: createGuardedConnector(policy), pipelining: 0 });
}

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
