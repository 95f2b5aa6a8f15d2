import { createHash } from "node:crypto";
import { isEmailClaim, type SignIn } from "#config/file/sign-in-entry.ts";
import { isObject } from "#lib/json.ts";
import { isBlank, toLine } from "#lib/text.ts";
import { ROLES } from "#model/kinds.ts";
import { scopesOf } from "#model/roles.ts";
import { type Caller, PERSON_PREFIX } from "#operations/caller.ts";
import { MAX_NAME_CHARS } from "./issue-key.ts";

const MAX_SHOWN = 10;

type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

/** What is stored of a sign-in, so that other settings grant the rights again. */
export type GrantBasis = Pick<SignIn, "issuer" | "clientId" | "claim"> & {
  readonly values: readonly string[];
};

/**
 * Returns the person with the rights that the table gives to the claim's values, or why there are none. Of several
 * values the strongest role counts, then one that is not masked; the zones are those of all values that agree in both.
 * So two values together never give a right that neither of them gives for that zone.
 */
export function grantPerson(
  claims: Claims,
  { issuer, claim, roles }: Pick<SignIn, "issuer" | "claim" | "roles">,
): Caller | { readonly refusal: string } {
  const values = readValues(claims, claim);
  const rights = grantRights(values, roles);
  const name = nameOf(claims);
  const unfit = values.find((value) => value.includes("\0") || !value.isWellFormed());
  if (unfit !== undefined)
    return {
      refusal: `${name} has no role here: the claim ${claim} has ${list([unfit])}, which holds a NUL character or half of a surrogate pair and cannot be stored. Change the person's groups at the issuer.`,
    };
  if (rights === null) {
    const none = isEmailClaim(claim)
      ? "counts only with email_verified true, and has no text"
      : "has no text";
    const came = values.length === 0 ? none : `has ${list(values)}`;
    return {
      refusal: `${name} has no role here: the claim ${claim} ${came}, and sign_in.roles knows ${list(Object.keys(roles))}. Add one of the claim's values to sign_in.roles in the configuration file, or change the person's groups at the issuer.`,
    };
  }
  const account = createHash("sha256").update(`${issuer}\n${claims.sub}`).digest("hex");
  return { keyId: `${PERSON_PREFIX}${account.slice(0, 16)}`, name, ...rights };
}

type Rights = Pick<Caller, "roles" | "scopes" | "zoneIds" | "masked">;

/** Returns the rights that the table gives to values; null if it gives none. */
function grantRights(values: readonly string[], roles: SignIn["roles"]): Rights | null {
  const grants = values.flatMap((value) => (Object.hasOwn(roles, value) ? (roles[value] ?? []) : []));
  const rank = ({ role, isMasked }: (typeof grants)[number]) => ROLES.indexOf(role) * 2 + (isMasked ? 0 : 1);
  const best = Math.max(...grants.map(rank));
  const chosen = grants.filter((grant) => rank(grant) === best);
  const [first] = chosen;
  if (first === undefined) return null;
  const zoneIds = chosen.some((grant) => grant.zoneIds === null)
    ? null
    : [...new Set(chosen.flatMap((grant) => grant.zoneIds ?? []))].sort((a, b) => a - b);
  return { roles: [first.role], scopes: scopesOf([first.role]), zoneIds, masked: first.isMasked };
}

/**
 * Returns the claims of an ID token and, where it lacks them, those of the issuer's userinfo. An address and what says that it is
 * verified are of one document, because the one speaks of the other.
 */
export function joinClaims(own: Claims, more: Readonly<Record<string, unknown>>): Claims {
  const { email: _email, email_verified: _verified, ...others } = more;
  return { ...("email" in own || "email_verified" in own ? others : more), ...own };
}

export function toGrantBasis(claims: Claims, { issuer, clientId, claim }: SignIn): GrantBasis {
  return { issuer, clientId, claim, values: readValues(claims, claim) };
}

/**
 * Returns the rights that the settings of now give to a session's person. Null if they give none: without sign-in, with
 * another issuer, client or claim, without a role, and for a session of a version that stored something else.
 */
export function grantAgain(basis: GrantBasis | null, settings: SignIn | null): Rights | null {
  if (basis === null || settings === null) return null;
  const isSame = (["issuer", "clientId", "claim"] as const).every((name) => basis[name] === settings[name]);
  return isSame ? grantRights(basis.values, settings.roles) : null;
}

/**
 * The claim's texts. A name with dots is first taken whole, as a URL is, and then as a path. An e-mail address counts only
 * if the claim beside it says that the issuer has verified it: at many issuers, people can enter any address.
 */
function readValues(claims: Claims, claim: string): string[] {
  const path = Object.hasOwn(claims, claim) ? [claim] : claim.split(".");
  let holder: unknown;
  let found: unknown = claims;
  for (const part of path) {
    holder = found;
    found = isObject(found) && Object.hasOwn(found, part) ? found[part] : undefined;
  }
  if (isEmailClaim(claim) && !isVerified(holder)) return [];
  return [found].flat().filter((value) => typeof value === "string");
}

function isVerified(holder: unknown): boolean {
  return isObject(holder) && holder["email_verified"] === true;
}

/** An address that the issuer has not verified could be that of somebody else. */
function nameOf(claims: Claims): string {
  const { email, preferred_username: username, name, sub } = claims;
  const names = [isVerified(claims) ? email : null, username, name, sub];
  const given = names.find((one) => typeof one === "string" && !isBlank(one));
  return toLine(String(given), MAX_NAME_CHARS);
}

function list(values: readonly string[]): string {
  const shown = values.slice(0, MAX_SHOWN).map((value) => JSON.stringify(toLine(value, 60)));
  return [...shown, ...(values.length > MAX_SHOWN ? [`${values.length - MAX_SHOWN} more`] : [])].join(", ");
}
