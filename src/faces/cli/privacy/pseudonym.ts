import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { readSentAddress } from "#model/ip-address.ts";
import { createPseudonymKeyring } from "#operations/privacy/pseudonym-keyring.ts";
import { toPseudonym } from "#stages/privacy/pseudonym.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

const HELP = `
After LONGWATCH_IP_DAYS a pseudonym replaces each address. To find older events of a person, search for the pseudonym
instead of the address. Exit code 0; 1 if this process does not have the key in use.

Examples:
  npm run -s longwatch -- privacy pseudonym --ip 203.0.113.7
  npm run -s longwatch -- privacy pseudonym --ip 203.0.113.7 --json`;

interface Flags {
  readonly ip?: string;
  readonly json?: true;
}

export function pseudonymCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("pseudonym", "Print the pseudonym of an address.", HELP, io)
    .option("--ip <address>", "the address (required)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async ({ ip, json }, read) => {
        const address = read.required("ip", ip, "an IPv4 or IPv6 address");
        if (address !== undefined && readSentAddress(address) === null)
          read.wrong("ip", address, "an IPv4 or IPv6 address");
        read.finish();
        const config = readConfig();
        const key = await withStore(config, (database) =>
          createPseudonymKeyring(config, database, { mayCreate: false }).open(),
        );
        const pseudonym = toPseudonym(key, address ?? "");
        if (json === true) await writeJson(io.stdout, { ip: address, pseudonym });
        else await writeOut(io.stdout, `${pseudonym}\n`);
      }),
    );
}
