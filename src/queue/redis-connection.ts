import { isIP } from "node:net";
import type { Secret } from "../lib/secret.ts";

export interface RedisAddress {
  readonly url: Secret;
  /** PEM of the authorities that its certificate may be from; null: those that Node knows. */
  readonly ca: string | null;
}

export interface RedisConnectionOptions {
  readonly url: string;
  readonly tls?: { readonly ca?: string; readonly servername?: string };
}

/**
 * The same for every connection to Redis. TLS is not left to the client: that takes `REDISS://` for plain text, and does
 * not say whom it wants to reach, by which a provider tells its customers' servers apart.
 */
export function toRedisConnection({ url, ca }: RedisAddress): RedisConnectionOptions {
  const { protocol, hostname } = new URL(url.reveal());
  if (protocol !== "rediss:") return { url: url.reveal() };
  const isName = isIP(hostname.replaceAll(/[[\]]/g, "")) === 0;
  const tls = { ...(ca === null ? {} : { ca }), ...(isName ? { servername: hostname } : {}) };
  return { url: url.reveal(), tls };
}
