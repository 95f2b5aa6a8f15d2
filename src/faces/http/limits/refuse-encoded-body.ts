import type { FastifyRequest } from "fastify";
import { Refusal } from "#operations/refusal.ts";

/** Refuses a compressed body. The service cannot decompress it and would report it as invalid JSON. */
export function refuseEncodedBody({ headers }: Pick<FastifyRequest, "headers">): void {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (!hasBody || encoding === "" || encoding === "identity") return;
  throw new Refusal(415, { detail: "The request body has a content encoding. Send the body without one." });
}
