import { UsageError } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";
import { findUrlMistakes } from "#stages/delivery/endpoint.ts";
import type { NetworkPolicy } from "#stages/delivery/network-policy.ts";
import { refuseLocalName } from "#stages/delivery/refuse-address.ts";

/**
 * Returns every mistake in the addresses and secrets of a channel or destination that would prevent sending. Connects to
 * nothing. `open` throws UsageError with mistakes.
 */
export function checkOpening(
  config: { readonly name: string },
  allowPrivateNetworks: boolean,
  open: (network: NetworkPolicy) => unknown,
): readonly string[] {
  const mistakes = findLocalName(config, allowPrivateNetworks);
  try {
    open({ allowPrivateNetworks });
    return mistakes;
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    const owner = new RegExp(`^(?:channel|destination) ${config.name}: `);
    return [...thrown.mistakes.map((mistake) => mistake.replace(owner, "")), ...mistakes];
  }
}

/** Returns every mistake in an address of the environment. The texts show only the host of the address. */
export function checkAddress(url: string, allowPrivateNetworks: boolean): readonly string[] {
  const local = refuseLocalName(URL.parse(url)?.hostname ?? "", allowPrivateNetworks);
  const refused = local === null ? [] : [`localhost is not a public address (${local})`];
  return [...findUrlMistakes(url, allowPrivateNetworks), ...refused];
}

/** Delivery resolves names and then refuses a loopback address; this name needs no resolving. */
function findLocalName(config: object, allowForAll: boolean): string[] {
  const {
    url,
    host,
    allowPrivateNetworks = allowForAll,
  } = config as {
    readonly url?: string | Secret;
    readonly host?: string;
    readonly allowPrivateNetworks?: boolean;
  };
  const text = typeof url === "object" ? url.reveal() : url;
  const name = text === undefined ? host : URL.parse(text)?.hostname;
  const range = refuseLocalName(name ?? "", allowPrivateNetworks);
  const field = text === undefined ? "host" : "url";
  return range === null ? [] : [`${field}: localhost is not a public address (${range})`];
}
