import type { FastifyReply, FastifyRequest } from "fastify";
import { createSecret, type Secret } from "#lib/secret.ts";
import { FLOW_LASTS_MS, type SessionTokens } from "#model/access-key.ts";

/** The cookies, and for how many seconds a browser keeps each: as long as a session or a sign-in may last. */
const COOKIES = { longwatch_session: 7 * 86_400, longwatch_sign_in: FLOW_LASTS_MS / 1_000 };
type Cookie = keyof typeof COOKIES;
export const PAGE_TOKEN_HEADER = "x-page-token";

/** With TLS, the name's prefix makes the browser accept the cookie from this host only, over TLS only. */
function nameFor({ protocol }: Pick<FastifyRequest, "protocol">, cookie: Cookie): string {
  return protocol === "https" ? `__Host-${cookie}` : cookie;
}

/**
 * Returns the values of all cookies of this name. A program on another port of the host, or on another name of the domain,
 * can set a second one, which the browser may send first.
 */
export function readCookies(request: FastifyRequest, cookie: Cookie): string[] {
  const wanted = `${nameFor(request, cookie)}=`;
  const pairs = (request.headers.cookie ?? "").split(";").map((pair) => pair.trim());
  const values = pairs.filter((pair) => pair.startsWith(wanted)).map((pair) => pair.slice(wanted.length));
  return [...new Set(values)];
}

/** Returns the request's secrets, for each cookie of a session. Without the header the page's secret is empty. */
export function readSessionTokens(request: FastifyRequest): SessionTokens[] {
  const page = createSecret(String(request.headers[PAGE_TOKEN_HEADER] ?? ""));
  return readCookies(request, "longwatch_session").map((cookie) => ({ cookie: createSecret(cookie), page }));
}

/** Sets the cookie; null removes it. */
export function writeCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  cookie: Cookie,
  token: Secret | null,
): void {
  const isSecure = request.protocol === "https";
  const parts = [
    `${nameFor(request, cookie)}=${token?.reveal() ?? ""}`,
    "Path=/",
    "HttpOnly",
    "SameSite=Strict",
    `Max-Age=${token === null ? 0 : COOKIES[cookie]}`,
    ...(isSecure ? ["Secure"] : []),
  ];
  void reply.header("set-cookie", parts.join("; "));
}
