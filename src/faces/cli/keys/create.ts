import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { issueKey } from "#faces/http/keys/issue-key.ts";
import { toKeyItem } from "#faces/http/keys/key-item.ts";
import {
  ADMIN_EXPIRES,
  ADMIN_RULE,
  EXPIRY_RULE,
  isRestrictedAdmin,
  MAX_NAME_CHARS,
  readExpiry,
  type WantedKey,
} from "#faces/http/keys/wanted-key.ts";
import { isRole, ROLES, type Role } from "#operations/roles.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { readActor, readText } from "../options/read-actor.ts";
import { gather, readZones } from "../options/read-list.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { describeKey } from "./describe-key.ts";

const HELP = `
A reader may read. An exporter may also export. An operator may also acknowledge and silence alerts. An admin may also
manage keys. The key is printed once and stored nowhere. To replace a key, create a second key, switch to it, and revoke
the first key.

Examples:
  npm run -s longwatch -- keys create --name grafana --role reader
  npm run -s longwatch -- keys create --name siem --role exporter --zones 101,102 --expires 90d
  npm run -s longwatch -- keys create --name support --role reader --masked`;

interface Flags {
  readonly name?: string;
  readonly role?: string;
  readonly zones?: readonly string[];
  readonly expires?: string;
  readonly masked?: true;
  readonly by?: string;
  readonly json?: true;
}

export function createCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("create", "Create a key and print it once.", HELP, io)
    .option("--name <text>", "purpose of the key (required)")
    .option("--role <role>", `${ROLES.join(", ")} (required)`)
    .option("--zones <ids>", "only these shield zones (default: all)", gather)
    .option(
      "--expires <duration>",
      `lifetime such as 12h, 90d or never (default: ${ADMIN_EXPIRES} for an admin, never for the others)`,
    )
    .option("--masked", "show the key only masked addresses and no records")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const wanted = readWanted(read, flags);
        const actor = readActor(read, flags.by);
        read.finish();
        const { key, listed } = await withStore(readConfig(), (database) =>
          issueKey(database, wanted, actor),
        );
        if (flags.json === true) await writeJson(io.stdout, { ...toKeyItem(listed), key: key.reveal() });
        else
          await writeOut(
            io.stdout,
            `${describeKey(listed)}\n  ${key.reveal()}\n\nThe key is shown only this once. Send it in the header AccessKey.\n`,
          );
      }),
    );
}

function readWanted(read: FlagReader, flags: Flags): WantedKey {
  const nameRule = "the purpose of the key";
  const name =
    flags.name === undefined
      ? read.wrong("name", undefined, nameRule)
      : readText(read, "name", flags.name, MAX_NAME_CHARS);
  const role = readRole(read, flags.role);
  const zoneIds = readZones(read, flags.zones, "zones") ?? null;
  const expiresInMs = readExpiry(flags.expires, role) ?? null;
  if (readExpiry(flags.expires, role) === undefined) read.wrong("expires", flags.expires, EXPIRY_RULE);
  const wanted = { name: name ?? "", role, zoneIds, isMasked: flags.masked === true, expiresInMs };
  if (isRestrictedAdmin(wanted))
    read.mistakes.push(`--role admin takes no --zones and no --masked: ${ADMIN_RULE}`);
  return wanted;
}

function readRole(read: FlagReader, text: string | undefined): Role {
  if (text !== undefined && isRole(text)) return text;
  read.wrong("role", text, `one of ${ROLES.join(", ")}`);
  return "reader";
}
