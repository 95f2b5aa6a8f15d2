/** The routes of the account: API keys, hostnames and DNS zones. */
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { empty, json, legacyError, type Reply } from "../reply.ts";
import { readLegacyBody } from "./bodies.ts";

const MAX_PAGE = 2_147_483_647;
const MIN_PER_PAGE = 5;
const MAX_PER_PAGE = 1_000;

/** The text of a parameter. The texts of a repeated one are joined, which is no number, so the answer is a refusal. */
function textOf(call: Call, name: string): string | null {
  return call.query.has(name) ? call.query.getAll(name).join() : null;
}

function readInteger(text: string | null, fallback: number): number | undefined {
  if (text === null) return fallback;
  return /^-?\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns one page of the account's keys (platform API spec 4.1). A page size out of range becomes the nearest limit.
 */
export function listApiKeys(context: EmulatorContext, call: Call): Reply {
  const page = readInteger(textOf(call, "page"), 1);
  const perPage = readInteger(textOf(call, "perPage"), MAX_PER_PAGE);
  if (page === undefined || page < 1 || page > MAX_PAGE) {
    return legacyError(
      400,
      "model.invalid",
      "page",
      `The value '${textOf(call, "page")}' is not valid: page must be 1 to ${MAX_PAGE}.`,
    );
  }
  if (perPage === undefined) {
    const rule = `perPage must be ${MIN_PER_PAGE} to ${MAX_PER_PAGE}`;
    return legacyError(
      400,
      "model.invalid",
      "perPage",
      `The value '${textOf(call, "perPage")}' is not valid: ${rule}.`,
    );
  }
  const size = Math.min(Math.max(perPage, MIN_PER_PAGE), MAX_PER_PAGE);
  const { apiKeys } = context.resources;
  return json(200, {
    Items: apiKeys.slice((page - 1) * size, page * size),
    CurrentPage: page,
    TotalItems: apiKeys.length,
    HasMoreItems: page * size < apiKeys.length,
  });
}

const KEY_TYPES = ["ecdsa", "rsa"] as const;

/** Changes the private key type of a hostname (platform API spec 4.2). `KeyType` is 0 for ECDSA, 1 for RSA; ECDSA when left out. */
export function setHostnameKeyType(context: EmulatorContext, call: Call): Reply {
  const id = call.params["id"] ?? "";
  const pullZone = /^\d{1,10}$/.test(id) ? context.resources.pullZones.get(Number(id)) : undefined;
  if (pullZone === undefined)
    return legacyError(404, "pullZone.not_found", "Id", `The pull zone ${id} does not exist.`);
  const body = readLegacyBody(call);
  if ("refusal" in body) return body.refusal;
  const { Hostname: hostname, KeyType: keyType = 0 } = body.value;
  if (typeof hostname !== "string" || hostname === "") {
    return legacyError(
      400,
      "pullzone.validation",
      "Hostname",
      "Hostname is required and must be a non-empty string.",
    );
  }
  const type = typeof keyType === "number" ? KEY_TYPES[keyType] : undefined;
  if (type === undefined) {
    return legacyError(
      400,
      "pullzone.validation",
      "KeyType",
      `The value ${JSON.stringify(keyType)} is not valid: KeyType must be 0 or 1.`,
    );
  }
  const known = pullZone.hostnames.find((entry) => entry.name === hostname.toLowerCase());
  if (known === undefined) {
    return legacyError(
      404,
      "pullzone.hostname_not_found",
      "Hostname",
      `The hostname ${hostname} does not belong to pull zone ${id}.`,
    );
  }
  known.keyType = type;
  return empty(context.switches.keyTypeStatus === "200" ? 200 : 204);
}

const NAME = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

/** Returns whether a DNS zone name is still free (platform API spec 4.3). */
export function checkDnsZone(context: EmulatorContext, call: Call): Reply {
  const body = readLegacyBody(call);
  if ("refusal" in body) return body.refusal;
  const name = body.value["Name"];
  const normal = typeof name === "string" ? name.toLowerCase().replace(/\.$/, "") : "";
  if (!NAME.test(normal)) {
    return legacyError(
      400,
      "dnsZone.validation",
      "Name",
      `The value ${JSON.stringify(name ?? null)} is not valid: Name must be a domain name.`,
    );
  }
  return json(200, { Available: !context.resources.takenDnsNames.includes(normal) });
}
