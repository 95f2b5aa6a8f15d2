/** Sessions of people, and the cookies that hold them. */

import type { FastifyReply, FastifyRequest } from "fastify";
import { createSecret, type Secret } from "#lib/secret.ts";
import { FLOW_LASTS_MS, type SessionTokens } from "#model/access-key.ts";
import type { Caller } from "#operations/caller.ts";
import type { GrantBasis } from "#people/keys/grant-person.ts";

/** The holder of a session, and when the session ends without another request. */
export interface Session {
  readonly id: string;
  readonly expiresAt: Date;
  readonly caller: Caller;
}

export interface NewSession {
  readonly userAgent: string;
  /** Written into the audit trail. */
  readonly network: string;
  /** The secrets that came with the request. Their session ends, and they are never used again. */
  readonly before: readonly SessionTokens[];
}

/**
 * Sessions of the console. A session lasts as long as its key or the issuer's ID token, at most 12 hours without use, and at most seven days; 24
 * hours for the role admin.
 */
export interface Sessions {
  /** Returns null if all the secrets are unknown, or if their session or key has ended. */
  readonly find: (tokens: readonly SessionTokens[]) => Promise<Session | null>;
  /** Records a use of the session, so that its 12 hours begin again. */
  readonly noteUse: (session: Session) => void;
  readonly openByKey: (caller: Caller, session: NewSession) => Promise<SessionTokens>;
  /** Consumes the one-time token. Returns null if the token is unknown, used or expired. */
  readonly openByLink: (token: string, session: NewSession) => Promise<SessionTokens | null>;
  /** Returns null if the same secret opened a session before. */
  readonly openByIssuer: (signed: SignedPerson, session: NewSession) => Promise<SessionTokens | null>;
  /** Returns the issuer's token of the session, with which the person signs out there too; null if there is none. */
  readonly end: (session: Session, how: { readonly everywhere: boolean }) => Promise<Secret | null>;
}

export interface SignedPerson {
  readonly caller: Caller;
  readonly basis: GrantBasis;
  readonly endsAt: Date;
  /** The issuer's sign-out asks for it. */
  readonly idToken: Secret;
  /** Hash of the secret with which the person came back. It opens one session only. */
  readonly flowHash: Buffer;
}

/** The issuer at which people sign in. `begin` and `finish` throw a Refusal that says what to do. */
export interface People {
  /** Ends the button "Sign in with ..."; null if no issuer is configured. */
  readonly label: () => string | null;
  /** Returns the address at which the person signs in, and the secret that the browser keeps until then. */
  readonly begin: () => Promise<{ readonly url: string; readonly secret: Secret }>;
  /** Checks the query with which the issuer sent the person back. One of the browser's secrets must have begun it. */
  readonly finish: (secrets: readonly string[], answer: string) => Promise<SignedPerson>;
  /** Returns the address at which the person signs out at the issuer; null if there is none or it cannot be found. */
  readonly signOutUrl: (idToken: Secret) => Promise<string | null>;
}

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
