import type { Call, EmulatorContext } from "../emulator-context.ts";
import { empty, legacyError, type Reply } from "../reply.ts";
import { readLegacyBody } from "./legacy-body.ts";

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
