/** Checks addresses and folders before anything is opened. */

import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";
import { findUrlMistakes, type NetworkPolicy, refuseLocalName } from "#delivery/receivers/endpoint.ts";
import { UsageError } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";

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
  const { url, allowPrivateNetworks = allowForAll } = config as {
    readonly url?: string | Secret;
    readonly allowPrivateNetworks?: boolean;
  };
  const text = typeof url === "object" ? url.reveal() : (url ?? "");
  const range = refuseLocalName(URL.parse(text)?.hostname ?? "", allowPrivateNetworks);
  return range === null ? [] : [`url: localhost is not a public address (${range})`];
}

/**
 * Returns why files cannot be written in a folder, or null. A folder that does not exist yet only needs a parent that
 * is a folder: it may be made elsewhere, for example in a container.
 */
export function findFolderMistake(folder: string): string | null {
  try {
    if (!statSync(folder).isDirectory()) return `must be a folder, but ${folder} is a file`;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    const parent = path.dirname(folder);
    if (code === "ENOTDIR") return findFolderMistake(parent);
    if (code === "ENOENT") return parent === folder ? null : findFileAbove(parent);
    return `must be a folder that Longwatch can read (${code})`;
  }
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch {
    return `must be a folder that Longwatch may write, but ${folder} is not; change its owner, or choose another folder`;
  }
}

function findFileAbove(folder: string): string | null {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found !== undefined) return found.isDirectory() ? null : `must be a folder, but ${folder} is a file`;
  const parent = path.dirname(folder);
  return parent === folder ? null : findFileAbove(parent);
}
