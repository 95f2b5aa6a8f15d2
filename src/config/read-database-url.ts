import { accessSync, constants } from "node:fs";
import { readCertificates } from "./read-certificates.ts";

const FILES = ["sslrootcert", "sslcert", "sslkey"] as const;
/** The modes that check the server's certificate and name. */
const CHECKED = ["allow", "prefer", "require", "verify-ca", "verify-full"];
const UNCHECKED = ["disable", "no-verify"];

export type ReadDatabaseUrl = { readonly url: string } | { readonly mistake: string };

/**
 * Returns a Postgres address in the complete form that every connection uses. The driver treats weaker modes of libpq
 * as `verify-full` today, warns that this will change, and silently accepts unknown modes. So the mode is written out
 * here. A mistake shows only the value of the parameter.
 */
export function readDatabaseUrl(text: string): ReadDatabaseUrl {
  const url = new URL(text);
  const { searchParams } = url;
  // The driver uses the last of several values.
  const given = (name: string) => searchParams.getAll(name).at(-1);
  // Without a file, Node's own authorities are used, which is what `system` means.
  if (given("sslrootcert") === "system") {
    searchParams.delete("sslrootcert");
    if (given("sslmode") === undefined) searchParams.set("sslmode", "verify-full");
  }
  for (const name of FILES) {
    const file = given(name);
    const why = file === undefined ? null : findFault(name, file);
    if (why !== null) return { mistake: `${name}=${JSON.stringify(file)}: ${why}` };
  }
  const isOff = given("ssl") === "false";
  if (isOff) searchParams.set("ssl", "0");
  const mode = given("sslmode");
  if (mode === undefined) return { url: isOff || searchParams.size !== 0 ? url.href : text };
  const known = [...CHECKED, ...UNCHECKED];
  if (!known.includes(mode))
    return { mistake: `sslmode=${JSON.stringify(mode)}: must be one of ${known.join(", ")}` };
  // With uselibpqcompat, the driver uses libpq's own meaning of the mode.
  if (given("uselibpqcompat") !== "true")
    searchParams.set("sslmode", CHECKED.includes(mode) ? "verify-full" : mode);
  return { url: url.href };
}

/** Returns whether a connection to this address is encrypted but does not check the server's certificate. */
export function trustsAnyServer(databaseUrl: string): boolean {
  const { searchParams } = new URL(databaseUrl);
  const last = (name: string) => searchParams.getAll(name).at(-1);
  const mode = last("sslmode");
  if (mode === undefined) return last("ssl") === "no-verify";
  if (mode === "no-verify") return true;
  const isLenient = mode === "prefer" || (mode === "require" && last("sslrootcert") === undefined);
  return last("uselibpqcompat") === "true" && isLenient;
}

function findFault(name: (typeof FILES)[number], file: string): string | null {
  if (name === "sslrootcert")
    return readCertificates(file) === null ? "must be a file of certificates in PEM" : null;
  try {
    accessSync(file, constants.R_OK);
    return null;
  } catch {
    return "must be a readable file";
  }
}
