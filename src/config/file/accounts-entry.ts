/** The accounts of the platform in the file. Each has a key, an address, zones and a request budget of its own. */
import path from "node:path";
import { z } from "zod";
import { secretText } from "#delivery/receivers/channel-definition.ts";
import { isObject } from "#lib/json.ts";
import type { Secret } from "#lib/secret.ts";
import { DEFAULT_ACCOUNT } from "#model/zones.ts";
import { openSecretFile, type Reread } from "../secret-file.ts";
import { publicUrl } from "../setting-kinds.ts";
import { toField, toShape } from "./entry-fields.ts";
import { type ReferenceContext, readFields } from "./read-entry.ts";

export interface Account {
  readonly name: string;
  readonly url: string;
  /** Null where only the service can read the key. */
  readonly key: Secret | null;
  readonly zoneIds: readonly number[];
  readonly requestsPerSecond: number;
  /** Reads the file of the key again, after which `key` reveals it. Without a file: `same`. */
  readonly rereadKey: () => Reread;
}

const ADDRESS_RULE = `must be ${publicUrl.rule}`;
const ZONE_RULE = "must be a zone's number, from 1 to 2147483647";
const settings = {
  key: secretText,
  address: z
    .string(ADDRESS_RULE)
    .refine((url) => publicUrl.schema.safeParse(url).success, ADDRESS_RULE)
    .optional()
    .describe("the platform's address for this account; if missing, EDGE_API_URL"),
  zones: z
    .array(z.int(ZONE_RULE).min(1, ZONE_RULE).max(2_147_483_647, ZONE_RULE))
    .min(1)
    .describe("the numbers of the shield zones to copy; no other account may have them"),
  requestsPerSecond: z
    .int()
    .min(1)
    .max(1_000)
    .default(10)
    .describe("the most requests with this key per second, for all replicas together"),
};
const fields = Object.entries<z.ZodType>(settings).map(([name, schema]) => toField(name, schema));
const entry = z.object({ ...settings, key: secretText.optional() });

/** One account in the file. The key is a reference. */
export const accountEntry = z.strictObject(toShape(fields));

interface AccountContext extends ReferenceContext {
  /** The account of the EDGE_ variables. */
  readonly edge: { readonly url: string | null; readonly zones: readonly number[] };
}

/** Reads the accounts with their keys. `mistakes` receives what the file's schema cannot find. */
export function readAccounts(input: unknown, context: AccountContext, mistakes: string[]): Account[] {
  const owners = new Map(context.edge.zones.map((zone) => [zone, "EDGE_SHIELD_ZONES"]));
  return Object.entries(isObject(input) ? input : {}).flatMap(([name, given]) => {
    if (!isObject(given)) return [];
    const at = `accounts.${name}`;
    if (name === DEFAULT_ACCOUNT)
      mistakes.push(`${at}: must have another name: ${name} is the account of EDGE_API_KEY`);
    const { data } = entry.safeParse(readFields(at, fields, given, context, mistakes));
    if (data === undefined) return [];
    for (const [index, zone] of data.zones.entries()) {
      const owner = owners.get(zone);
      if (owner !== undefined)
        mistakes.push(`${at}.zones[${index}]: ${zone}: must be a zone of one account, once: ${owner} has it`);
      owners.set(zone, owner ?? at);
    }
    const { key = null, zones, requestsPerSecond } = data;
    const url = data.address ?? context.edge.url;
    if (url === null) mistakes.push(`${at}.address: not set: must be given, because EDGE_API_URL is not set`);
    const file = given["key_file"];
    if (key !== null && !/^[!-~]+$/.test(key.reveal()))
      mistakes.push(
        `${at}.${file === undefined ? "key_env" : "key_file"}: [not shown]: must be printable ASCII without blanks`,
      );
    const opened =
      typeof file === "string" && key !== null
        ? openSecretFile(path.resolve(context.folder, file), key.reveal())
        : { secret: key, reread: () => "same" as const };
    return [
      {
        name,
        url: url ?? "",
        key: opened.secret,
        zoneIds: zones,
        requestsPerSecond,
        rereadKey: opened.reread,
      },
    ];
  });
}
