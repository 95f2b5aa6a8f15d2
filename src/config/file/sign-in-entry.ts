import { z } from "zod";
import { addressSettings, secretText } from "#delivery/receivers/channel-definition.ts";
import { isObject } from "#lib/json.ts";
import type { Secret } from "#lib/secret.ts";
import { PERSON_ROLES } from "#model/kinds.ts";
import type { Zones } from "#model/zones.ts";
import { checkAddress } from "../check-opening.ts";
import { accounts, toField, toShape, zones as zonesEntry } from "./entry-fields.ts";
import { type ReferenceContext, readFields } from "./read-entry.ts";
import { resolveZone } from "./resolve-zones.ts";

/** The rights of people whose claim has one value. */
export interface SignInGrant {
  readonly role: (typeof PERSON_ROLES)[number];
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  readonly isMasked: boolean;
}

/** The OpenID Connect issuer at which people sign in. */
export interface SignIn {
  readonly label: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret | null;
  readonly scopes: readonly string[];
  readonly claim: string;
  /** Grants by the values of the claim. */
  readonly roles: Readonly<Record<string, SignInGrant>>;
  readonly allowPrivateNetworks: boolean;
}

/** Returns whether a claim is an e-mail address by its name: `email`, `user.email`, `https://example.com/email`. */
export function isEmailClaim(claim: string): boolean {
  return /(?:^|[./:_])e?-?mails?$/i.test(claim);
}

/** Matches the names of claims that issuers make of an e-mail address, or fill with one. */
const OF_EMAIL = /mail|(?:^|[./:_-])(?:hd|domain|upn|unique_name|(?:preferred_)?username)$/i;

/** Returns whether e-mail addresses decide about roles: the claim has or may have them, or the table names some. */
export function decidesByEmail({ claim, roles }: Pick<SignIn, "claim" | "roles">): boolean {
  return OF_EMAIL.test(claim) || Object.keys(roles).some((value) => value.includes("@"));
}

const TEXT_RULE = "must be text of 1 to 200 printable characters";
const text = z.string(TEXT_RULE).regex(/^[^\p{C}]{1,200}$/u, TEXT_RULE);
const SCOPES_RULE = "must be a list of scopes, openid among them";
const ADMIN_RULE =
  "must not be admin with zone, account or masked: an admin can create a key without these limits";

const grant = z
  .strictObject({
    role: z.enum(PERSON_ROLES),
    zone: zonesEntry.optional().describe("numbers, or names from zones; if missing, every zone"),
    account: accounts
      .optional()
      .describe("accounts whose zones the person may see; with zone, both must match"),
    masked: z.boolean().optional().describe("whether the person sees no raw record, and addresses masked"),
  })
  .refine(
    ({ role, zone, account, masked }) =>
      role !== "admin" || (zone === undefined && account === undefined && masked !== true),
    ADMIN_RULE,
  );

const settings = {
  label: text.optional().describe('ends the button "Sign in with ..."; if missing, the host of the issuer'),
  issuer: z.url("must be a URL").max(500).describe("as the issuer's discovery document says it"),
  clientId: text,
  clientSecret: secretText.optional(),
  scopes: z
    .array(z.string().regex(/^[!-~]{1,200}$/, SCOPES_RULE))
    .refine((scopes) => scopes.includes("openid"), SCOPES_RULE)
    .optional()
    .describe("if missing, openid, profile and email"),
  claim: text.describe("the claim that decides the role; a dot leads into an object (realm_access.roles)"),
  roles: z
    .record(text, grant)
    .refine((roles) => Object.keys(roles).length > 0, "must have at least one value of the claim")
    .describe("the rights for each value of the claim; a person without such a value is refused"),
  ...addressSettings,
};
const fields = Object.entries<z.ZodType>(settings).map(([name, schema]) => toField(name, schema));
const entry = z.object(settings);

/** `sign_in` in the file. The secret is a reference. */
export const signInEntry = z.strictObject(toShape(fields));

/** Reads the entry with its secret. `mistakes` receives what the file's schema cannot find. */
export function readSignIn(
  input: unknown,
  { zones, ...context }: ReferenceContext & { readonly zones: Zones },
  mistakes: string[],
): SignIn | null {
  if (!isObject(input)) return null;
  const values = readFields("sign_in", fields, input, context, mistakes);
  const { issuer, allowPrivateNetworks = context.allowPrivateNetworks } = values;
  const refused = typeof issuer === "string" ? checkAddress(issuer, allowPrivateNetworks === true) : [];
  mistakes.push(...refused.map((mistake) => `sign_in.issuer: ${mistake}`));
  const { data } = entry.safeParse(values);
  if (data === undefined) return null;
  const grants = Object.entries(data.roles).map(([value, { role, zone, account, masked = false }]) => [
    value,
    { role, zoneIds: resolveZone({ zone, account }, zones) ?? null, isMasked: masked },
  ]);
  return {
    ...data,
    label: data.label ?? new URL(data.issuer).host,
    clientSecret: data.clientSecret ?? null,
    scopes: data.scopes ?? ["openid", "profile", "email"],
    roles: Object.fromEntries(grants) as SignIn["roles"],
    allowPrivateNetworks: allowPrivateNetworks === true,
  };
}
