import type { FastifyReply, FastifyRequest } from "fastify";
import { planBody, type SearchRequest } from "#operations/search/plan-body.ts";
import { sendMistakes } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";
import { readJsonBody } from "./read-json-body.ts";
import { isServedZone, readZoneId } from "./read-zone.ts";

/** The search or export a request asks for, checked in the platform's order; null when it was refused and answered. */
export async function readSearchRequest(
  deps: PlatformDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: "search" | "export",
): Promise<SearchRequest | "unknown zone" | null> {
  const body = readJsonBody(request, reply);
  if (body === null) return null;
  const zoneId = readZoneId(request, reply);
  if (zoneId === null) return null;
  const { clock, service } = deps;
  const isMasked = request.caller?.masked ?? true;
  const asked = { nowMs: clock(), retentionDays: service.retention.eventDays, isMasked };
  const read = planBody(body.value, asked, { kind, form: "platform" });
  if ("mistakes" in read) {
    sendMistakes(reply, read.mistakes);
    return null;
  }
  return (await isServedZone(deps, request, zoneId)) ? { zoneId, ...read } : "unknown zone";
}
