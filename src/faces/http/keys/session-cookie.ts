import type { FastifyReply, FastifyRequest } from "fastify";
import { createSecret, type Secret } from "#lib/secret.ts";
import type { SessionTokens } from "#model/session-token.ts";

const NAME = "longwatch_session";
/** Time that a browser keeps the cookie: the maximum duration of a session. */
const MAX_AGE_SECONDS = 7 * 86_400;
export const PAGE_TOKEN_HEADER = "x-page-token";

/** With TLS, the name's prefix makes the browser accept the cookie from this host only, over TLS only. */
function nameFor({ protocol }: Pick<FastifyRequest, "protocol">): string {
  return protocol === "https" ? `__Host-${NAME}` : NAME;
}

/** Returns the request's secrets; null without a cookie. Without the header the page's secret is empty. */
export function readSessionTokens(request: FastifyRequest): SessionTokens | null {
  const wanted = `${nameFor(request)}=`;
  const pairs = (request.headers.cookie ?? "").split(";").map((pair) => pair.trim());
  const cookie = pairs.find((pair) => pair.startsWith(wanted))?.slice(wanted.length);
  const page = String(request.headers[PAGE_TOKEN_HEADER] ?? "");
  return cookie === undefined ? null : { cookie: createSecret(cookie), page: createSecret(page) };
}

/** Sets the cookie; null removes it. */
export function writeSessionCookie(request: FastifyRequest, reply: FastifyReply, token: Secret | null): void {
  const isSecure = request.protocol === "https";
  const parts = [
    `${nameFor(request)}=${token?.reveal() ?? ""}`,
    "Path=/",
    "HttpOnly",
    "SameSite=Strict",
    `Max-Age=${token === null ? 0 : MAX_AGE_SECONDS}`,
    ...(isSecure ? ["Secure"] : []),
  ];
  void reply.header("set-cookie", parts.join("; "));
}
