import { accessSync, constants } from "node:fs";
import { readCertificates } from "./read-certificates.ts";

const FILES = ["sslrootcert", "sslcert", "sslkey"] as const;
/** Each of them checks the server's certificate and name here. */
const CHECKED = ["allow", "prefer", "require", "verify-ca", "verify-full"];
const UNCHECKED = ["disable", "no-verify"];

export type ReadDatabaseUrl = { readonly url: string } | { readonly mistake: string };

/**
 * A Postgres address in the form that every connection here is opened with, so that all of them mean the same by it. The
 * driver takes weaker modes of libpq for `verify-full` today, with a warning that this will end, and takes what it does
 * not know without a word: what is meant is written out instead. The mistake shows nothing but the parameter's value.
 */
export function readDatabaseUrl(text: string): ReadDatabaseUrl {
  const url = new URL(text);
  const { searchParams } = url;
  // Of several the driver takes the last.
  const given = (name: string) => searchParams.getAll(name).at(-1);
  // Node's own authorities are the ones that count without a file.
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
  // Who asks the driver for libpq's own meaning has it.
  if (given("uselibpqcompat") !== "true")
    searchParams.set("sslmode", CHECKED.includes(mode) ? "verify-full" : mode);
  return { url: url.href };
}

/** Whether a connection by this address is encrypted for whoever answers it, because nothing checks who that is. */
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
