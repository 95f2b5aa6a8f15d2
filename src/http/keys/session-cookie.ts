import type { FastifyReply, FastifyRequest } from "fastify";
import type { Secret } from "../../lib/secret.ts";

const NAME = "longwatch_session";
/** How long a browser keeps the cookie. The session ends earlier: after 12 idle hours. */
const MAX_AGE_SECONDS = 30 * 86_400;

/** With TLS, here or at a trusted proxy, the browser takes the cookie from no other host and sends it over TLS only. */
function nameFor({ protocol }: Pick<FastifyRequest, "protocol">): string {
  return protocol === "https" ? `__Host-${NAME}` : NAME;
}

/** The token in the request's cookie; null where there is none. */
export function readSessionCookie(request: FastifyRequest): string | null {
  const wanted = `${nameFor(request)}=`;
  const pairs = (request.headers.cookie ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(wanted))?.slice(wanted.length) ?? null;
}

/** Null takes the cookie away. */
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
