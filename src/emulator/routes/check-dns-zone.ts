import type { Call, EmulatorContext } from "../emulator-context.ts";
import { json, legacyError, type Reply } from "../reply.ts";
import { readLegacyBody } from "./legacy-body.ts";

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
