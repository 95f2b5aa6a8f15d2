import type { Readable } from "node:stream";
import { NETWORK_RULE, readNetwork, singleAddress } from "#stages/privacy/erasure-target.ts";
import { replaceAddresses } from "#stages/privacy/replace-addresses.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readActor, readText } from "../options/read-actor.ts";

const MAX_REASON_CHARS = 500;

export interface EraseFlags {
  readonly ip?: string;
  readonly cidr?: string;
  readonly zone?: string;
  readonly includeMasked?: true;
  readonly until?: string;
  readonly reason?: string;
  readonly by?: string;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly json?: true;
}

/** Reads the flags. `network` is undefined if it is wrong; the mistake is then noted in `read`. */
export function readEraseFlags(
  read: FlagReader,
  flags: EraseFlags,
  stdin: Readable & { readonly isTTY?: boolean },
) {
  const network = readWhom(read, flags);
  if (flags.yes !== true && flags.dryRun !== true && stdin.isTTY !== true)
    read.mistakes.push("--yes or --dry-run must be given if the input is not a terminal");
  return {
    network,
    zoneId: flags.zone === undefined ? null : (read.id("zone", flags.zone, "a shield zone's number") ?? null),
    untilAt: flags.until === undefined ? undefined : read.time("until", flags.until),
    actor: readActor(read, flags.by),
    reason: readReason(read, flags.reason),
  };
}

function readWhom(read: FlagReader, { ip, cidr }: EraseFlags) {
  if ((ip === undefined) === (cidr === undefined)) {
    read.mistakes.push("either --ip or --cidr must be given");
    return undefined;
  }
  if (cidr !== undefined) return readNetwork(cidr) ?? read.wrong("cidr", cidr, NETWORK_RULE);
  return singleAddress(ip ?? "") ?? read.wrong("ip", ip, "an IPv4 or IPv6 address");
}

/** Refuses a reason with an address, because the audit trail is kept longer than the erased data. */
function readReason(read: FlagReader, text: string | undefined): string | null {
  const reason = readText(read, "reason", text, MAX_REASON_CHARS) ?? null;
  if (reason === null) return null;
  let isNaming = false;
  replaceAddresses(reason, () => {
    isNaming = true;
    return null;
  });
  return isNaming
    ? (read.wrong("reason", text, "a text without an address: the audit trail keeps it") ?? null)
    : reason;
}
