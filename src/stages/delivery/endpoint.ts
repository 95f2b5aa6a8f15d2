import type { Dispatcher } from "undici";
import { UsageError } from "#lib/errors.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { createGuardedDispatcher } from "./guarded-dispatcher.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import { refuseHost } from "./refuse-address.ts";

/** The settings that allow private addresses: for one channel in the configuration file, and for all channels. */
export const ALLOWED_BY = "allow_private_networks, LONGWATCH_ALLOW_PRIVATE_WEBHOOKS";

/** A receiver of POST requests. Only the origin of its URL may be shown, because anyone with the rest can post. */
export interface Endpoint {
  readonly origin: string;
  /** The origin without its scheme, for messages. */
  readonly host: string;
  /** Path and query. */
  readonly path: Secret;
  readonly dispatcher: Dispatcher;
}

/** Returns the reasons for which nothing would be sent to this URL. No reason shows more of the URL than its host. */
export function findUrlMistakes(text: string, allowPrivateNetworks: boolean): string[] {
  const url = URL.parse(text);
  if (url === null) return ["is not a URL"];
  const mistakes: string[] = [];
  const range = refuseHost(url.hostname, allowPrivateNetworks);
  if (url.protocol !== "https:" && !(allowPrivateNetworks && url.protocol === "http:")) {
    mistakes.push(
      `must be https; plain http is allowed only if private addresses are allowed (${ALLOWED_BY})`,
    );
  }
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
