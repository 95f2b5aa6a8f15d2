import { isIP } from "node:net";
import type { Secret } from "#lib/secret.ts";

export interface RedisAddress {
  readonly url: Secret;
  /** PEM of the authorities that may sign the server's certificate; null: those that Node knows. */
  readonly ca: string | null;
}

export interface RedisConnectionOptions {
  readonly url: string;
  readonly tls?: { readonly ca?: string; readonly servername?: string };
}

/**
 * Returns the options of every connection to Redis. TLS is configured here and not by the client, which treats
 * `REDISS://` as plain text and sends no server name, by which providers separate their customers.
 */
export function toRedisConnection({ url, ca }: RedisAddress): RedisConnectionOptions {
  const { protocol, hostname } = new URL(url.reveal());
  if (protocol !== "rediss:") return { url: url.reveal() };
  const isName = isIP(hostname.replaceAll(/[[\]]/g, "")) === 0;
  const tls = { ...(ca === null ? {} : { ca }), ...(isName ? { servername: hostname } : {}) };
  return { url: url.reveal(), tls };
}
