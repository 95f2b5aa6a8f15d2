import type { FastifyReply, FastifyRequest } from "fastify";
import { createSecret, type Secret } from "#lib/secret.ts";
import type { SessionTokens } from "#model/session-token.ts";
import { FLOW_LASTS_MS } from "#model/sign-in-flow.ts";

/** The cookies, and for how many seconds a browser keeps each: as long as a session or a sign-in may last. */
const COOKIES = { longwatch_session: 7 * 86_400, longwatch_sign_in: FLOW_LASTS_MS / 1_000 };
type Cookie = keyof typeof COOKIES;
export const PAGE_TOKEN_HEADER = "x-page-token";

/** With TLS, the name's prefix makes the browser accept the cookie from this host only, over TLS only. */
function nameFor({ protocol }: Pick<FastifyRequest, "protocol">, cookie: Cookie): string {
  return protocol === "https" ? `__Host-${cookie}` : cookie;
}

/** Returns the cookie's value; undefined without it. */
export function readCookie(request: FastifyRequest, cookie: Cookie): string | undefined {
  const wanted = `${nameFor(request, cookie)}=`;
  const pairs = (request.headers.cookie ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(wanted))?.slice(wanted.length);
}

/** Returns the request's secrets; null without a cookie. Without the header the page's secret is empty. */
export function readSessionTokens(request: FastifyRequest): SessionTokens | null {
  const cookie = readCookie(request, "longwatch_session");
  const page = String(request.headers[PAGE_TOKEN_HEADER] ?? "");
  return cookie === undefined ? null : { cookie: createSecret(cookie), page: createSecret(page) };
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
