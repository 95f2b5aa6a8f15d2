import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import type { ServerPlace } from "#db/service/server-facts.ts";
import { isAlive } from "#lib/process.ts";

/**
 * Returns the data folder of a server that runs on this machine; null if the server runs elsewhere, or if the role may
 * not know its folder. The folder alone proves nothing: many machines have the same one, and a tunnel ends at this one.
 */
export function findLocalFolder({ dataFolder, address, backendPid }: ServerPlace): string | null {
  const isHere = address === null || isOwnAddress(address);
  return dataFolder !== null && isHere && isAlive(backendPid) && existsSync(dataFolder) ? dataFolder : null;
}

function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((ones) => ones?.some((one) => one.address === address));
}
