import type { FastifyReply, FastifyRequest } from "fastify";
import { hasStoredEvents } from "#db/archive/archived-days.ts";
import { isObject } from "#lib/json.ts";
import { maySeeZone } from "#operations/caller.ts";
import { failureBlock, sendMistakes, shown } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";

const MAX_INT32 = 2_147_483_647;

export function readParam(request: FastifyRequest, name: string): string {
  const value = isObject(request.params) ? request.params[name] : undefined;
  return typeof value === "string" ? value : "";
}

/** Returns the zone of the path. If the path contains no 32-bit integer, answers and returns null. */
export function readZoneId(request: FastifyRequest, reply: FastifyReply): number | null {
  const text = readParam(request, "shieldZoneId");
  const id = /^-?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (Math.abs(id) <= MAX_INT32) return id;
  sendMistakes(reply, {
    shieldZoneId: [`The value '${shown(text)}' is not valid: shieldZoneId must be a 32-bit integer.`],
  });
  return null;
}

/** Returns whether the key may see the zone and the service copies it or has events of it. */
export async function isServedZone(
  { db, service }: Pick<PlatformDeps, "db" | "service">,
  { caller }: FastifyRequest,
  zoneId: number,
): Promise<boolean> {
  if (caller === null || !maySeeZone(caller, zoneId)) return false;
  return service.zoneIds.includes(zoneId) || hasStoredEvents(db, zoneId);
}

/** The answer is the same for a zone that is not watched and a zone that the key may not see. */
export function unknownZoneBlock() {
  return failureBlock(
    202,
    "not_found_or_unauthorised_access.shieldzone",
    "The Shield Zone was not found, or access to it is not authorised.",
  );
}
