/** The rights of the roles of keys and people. */
import { ROLES, type Role, SCOPES, type Scope } from "./kinds.ts";

const upTo = (scope: Scope) => SCOPES.slice(0, SCOPES.indexOf(scope) + 1);

/** The rights of each role. */
export const ROLE_SCOPES: Readonly<Record<Role, readonly Scope[]>> = {
  feed: upTo("feed"),
  reader: upTo("read"),
  exporter: upTo("export"),
  operator: upTo("act"),
  admin: SCOPES,
};

export function scopesOf(roles: readonly Role[]): ReadonlySet<Scope> {
  return new Set(roles.flatMap((role) => ROLE_SCOPES[role]));
}

/** Says to a client which scope its key lacks, and the least role that has the scope. */
export function describeLack(scope: Scope): string {
  const role = ROLES.find((one) => ROLE_SCOPES[one].includes(scope));
  return `This key lacks the scope ${scope}. Use a key with the role ${role} or higher.`;
}

export function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}
