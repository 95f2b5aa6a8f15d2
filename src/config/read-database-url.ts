import { accessSync, constants } from "node:fs";
import { readCertificates } from "./secret-file.ts";

/** The values of target_session_attrs that name a host which accepts writes. */
const WRITABLE = ["read-write", "primary"];
const FILES = ["sslrootcert", "sslcert", "sslkey"] as const;
/** The modes that check the server's certificate and name. */
const CHECKED = ["allow", "prefer", "require", "verify-ca", "verify-full"];
const UNCHECKED = ["disable", "no-verify"];

/** Scheme, user with password, hosts, and the rest. */
const PARTS = /^(postgres(?:ql)?:\/\/)(?:([^/?#]*)@)?([^/?#@]*)(.*)$/s;

export type ReadDatabaseUrl = { readonly url: string } | { readonly mistake: string };

/**
 * Returns a Postgres address in the complete form that every connection uses. The driver treats weaker modes of libpq
 * as `verify-full` today, warns that this will change, and silently accepts unknown modes. So the mode is written out
 * here. Several hosts, and a user before a socket's folder, are written as parameters, which the driver's URLs can hold. A
 * mistake shows only the value of the parameter.
 */
export function readDatabaseUrl(given: string): ReadDatabaseUrl {
  const mistake = findUserMistake(given);
  if (mistake !== null) return { mistake };
  const text = writeHosts(given);
  const url = URL.parse(text);
  if (url === null) return { mistake: "must be a postgres:// URL" };
  return settleParameters(text, url);
}

/**
 * Returns why the user and password cannot be read. A URL ends before #, / and ?, so the rest of a password with such a character would
 * be taken for a host, a path or nothing.
 */
function findUserMistake(text: string): string | null {
  const [, , user, , rest = ""] = PARTS.exec(text) ?? [];
  const [path = ""] = rest.split("?");
  if (path.includes("@") || (user === undefined && rest.includes("@")))
    return `user or password contains ${rest.charAt(0)}: write # as %23, / as %2F, ? as %3F, @ as %40 and % as %25`;
  return /%(?![\da-f]{2})/i.test(user ?? "") ? "user or password contains %: write % as %25" : null;
}

function writeHosts(text: string): string {
  const [, scheme = "", user, hosts = "", rest = ""] = PARTS.exec(text) ?? [];
  if (hosts === "" && user !== undefined) return `${scheme}${user}@localhost${rest}`;
  if (!hosts.includes(",")) return text;
  const places = hosts
    .split(",")
    .map((place) => /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(place) ?? [place, place]);
  const [first = ""] = hosts.split(",");
  const url = URL.parse(`${scheme}${user === undefined ? "" : `${user}@`}${first}${rest}`);
  if (url === null) return text;
  url.searchParams.set("host", places.map(([, host = ""]) => host.replaceAll(/[[\]]/g, "")).join(","));
  url.searchParams.set("port", places.map(([, , port = "5432"]) => port).join(","));
  return url.href;
}

function settleParameters(text: string, url: URL): ReadDatabaseUrl {
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
  const attributes = given("target_session_attrs") ?? "primary";
  if (!WRITABLE.includes(attributes))
    return {
      mistake: `target_session_attrs=${JSON.stringify(attributes)}: must be ${WRITABLE.join(" or ")}, because Longwatch writes`,
    };
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
