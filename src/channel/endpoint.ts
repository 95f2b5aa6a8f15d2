import type { Dispatcher } from "undici";
import { UsageError } from "../errors.ts";
import { createSecret, type Secret } from "../secret.ts";
import { createGuardedDispatcher } from "./guarded-dispatcher.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import { refuseHost } from "./refuse-address.ts";

/** A receiver of POST requests. Of its URL only the origin may be shown: the rest lets anyone post. */
export interface Endpoint {
  readonly origin: string;
  /** The origin without its scheme, for messages. */
  readonly host: string;
  /** Path and query. */
  readonly path: Secret;
  readonly dispatcher: Dispatcher;
}

function findMistakes(url: URL, allowPrivateNetworks: boolean): string[] {
  const mistakes: string[] = [];
  const range = refuseHost(url.hostname, allowPrivateNetworks);
  if (url.protocol !== "https:" && !(allowPrivateNetworks && url.protocol === "http:")) {
    mistakes.push(`url: must be https, plain http only with allowPrivateNetworks`);
  }
  if (url.username !== "" || url.password !== "") mistakes.push("url: must not hold a user or password");
  if (range !== null) mistakes.push(`url: ${url.hostname} is not a public address (${range})`);
  return mistakes;
}

/**
 * Checks what can be checked before anything is sent; names are judged when they are resolved.
 * @throws {UsageError} naming the channel, never more of the URL than its host
 */
export function openEndpoint(channel: string, url: Secret, policy: NetworkPolicy): Endpoint {
  const parsed = URL.canParse(url.reveal()) ? new URL(url.reveal()) : null;
  const mistakes =
    parsed === null ? ["url: is not a URL"] : findMistakes(parsed, policy.allowPrivateNetworks ?? false);
  if (parsed === null || mistakes.length > 0) {
    throw new UsageError(mistakes.map((mistake) => `channel ${channel}: ${mistake}`));
  }
  return {
    origin: parsed.origin,
    host: parsed.host,
    path: createSecret(`${parsed.pathname}${parsed.search}`),
    dispatcher: createGuardedDispatcher(policy),
  };
}

/** The same receiver at a path below, with more of a query; what is put into the path is escaped by the caller. */
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
