import type { FastifyRequest } from "fastify";
import { Refusal } from "#operations/refusal.ts";

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Refuses a request that another site's page makes a browser send with the session's cookie. SameSite=Strict alone
 * would admit pages of other ports and subdomains.
 * @throws {Refusal} 403
 */
export function refuseOtherOrigins(request: FastifyRequest): void {
  if (READS.has(request.method) || isSameOrigin(request) === true) return;
  throw new Refusal(403, {
    slug: "other-origin",
    detail:
      "With a session's cookie, a request that changes something must come from this origin. Programs send the header AccessKey instead.",
  });
}

/**
 * Returns whether the page that sends the request is of this origin; null for a program that names no origin. Browsers
 * send Sec-Fetch-Site if they trust the origin (TLS or loopback), and Origin with every POST, PUT, PATCH and DELETE.
 */
export function isSameOrigin({
  headers,
  protocol,
  host,
}: Pick<FastifyRequest, "headers" | "protocol" | "host">): boolean | null {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  const { origin } = headers;
  return origin === undefined ? null : origin === URL.parse(`${protocol}://${host}`)?.origin;
}
