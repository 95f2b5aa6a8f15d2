import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { createRateLimiter, type RateLimiter } from "#lib/rate-limiter.ts";
import { ROLES } from "#model/kinds.ts";
import type { SessionTokens } from "#model/session-token.ts";
import type { Authenticate } from "#operations/caller.ts";
import { known } from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { createFailedKeys, type FailedKeys } from "../keys/failed-keys.ts";
import { refuseWaiting } from "../keys/guard.ts";
import { isSameOrigin } from "../keys/same-origin.ts";
import type { NoteSecurityEvent } from "../keys/security-events.ts";
import { readSessionTokens, writeSessionCookie } from "../keys/session-cookie.ts";
import type { NewSession, Sessions } from "../keys/sessions.ts";
import { networkOf } from "../limits/client-network.ts";
import { aboutRequest, refuseSpent } from "../limits/limit-requests.ts";

const tags = ["Service"];

const SignIn = z.union([
  z.strictObject({ key: z.string().min(1).max(512).describe("An access key.") }),
  z.strictObject({ token: z.string().min(1).max(100).describe("The part of a sign-in link after #.") }),
]);

export const SessionInfo = z
  .object({
    keyName: z.string(),
    keyId: z.string(),
    roles: z.array(z.enum(ROLES)),
    zones: z.array(z.int()).nullable().describe("Null means every zone."),
    maskedAddresses: z.boolean().describe("The key sees no raw records, and IP addresses only masked."),
    sessionId: z.string().nullable().describe("Null if the request came with a key."),
    expiresAt: z
      .string()
      .nullable()
      .describe("The end of the session if it is not used again. Null if the request came with a key."),
    version: z.string(),
    publicUrl: z.string().nullable().describe("The value of LONGWATCH_PUBLIC_URL, if it is set."),
  })
  .meta({ id: "Session" });

export interface SessionRoutes {
  readonly sessions: Sessions;
  readonly authenticate: Authenticate;
  readonly failed: FailedKeys;
  readonly clock: Clock;
  readonly note: NoteSecurityEvent;
  readonly version: string;
  readonly publicUrl: string | null;
}

/** Limit of the sessions that one key opens. Each session adds an audit entry that is kept for good. */
const QUOTA = { quota: 30, windowMs: 10 * 60_000, maxKeys: 1_000 };

interface SignInParts extends SessionRoutes {
  readonly failedLinks: FailedKeys;
  readonly opened: RateLimiter;
}

/** Adds `/session`: sign in, show who is signed in, sign out. */
export function addSession(app: FastifyInstance, parts: SessionRoutes): void {
  const { sessions, version, publicUrl } = parts;
  const signingIn = { ...parts, failedLinks: createFailedKeys(), opened: createRateLimiter(QUOTA) };
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.post(
    "/session",
    {
      config: { access: "public", refuses: [401, 403, 429] },
      schema: {
        tags,
        summary: "Sign in with a key or with a one-time token",
        description:
          "The answer sets a cookie, and its body has the session's second secret. Both together are accepted wherever the header AccessKey is: a browser sends the cookie to every port of the host, so the cookie alone opens nothing. A request with the header X-User-Active: true counts as use. The session has the rights of the key. It ends after 12 hours without use, after seven days (24 hours with the role admin), with its key, or when it is revoked. One key can open 30 sessions in ten minutes.",
        body: SignIn,
        response: {
          200: z.object({ pageToken: z.string().describe("The value of the header X-Page-Token.") }),
        },
      },
    },
    async (request, reply) => {
      // A program names no origin. A page of another site must not sign its reader in.
      if (isSameOrigin(request) === false)
        throw new Refusal(403, { slug: "other-origin", detail: "A sign-in must come from this origin." });
      const { cookie, page } = await signIn(signingIn, request, request.body);
      writeSessionCookie(request, reply, cookie);
      return { pageToken: page.reveal() };
    },
  );
  typed.get(
    "/session",
    {
      config: { access: { scope: "read" } },
      schema: { tags, summary: "Show who is signed in", response: { 200: SessionInfo } },
    },
    async ({ caller, session }) => {
      const { name, keyId, roles, zoneIds, masked } = known(caller);
      return {
        keyName: name,
        keyId,
        roles: [...roles],
        zones: zoneIds === null ? null : [...zoneIds],
        maskedAddresses: masked,
        sessionId: session?.id ?? null,
        expiresAt: session?.expiresAt.toISOString() ?? null,
        version,
        publicUrl,
      };
    },
  );
  typed.delete(
    "/session",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags,
        summary: "Sign out",
        querystring: z.strictObject({
          everywhere: z
            .enum(["true", "false"])
            .default("false")
            .describe("true: also end all other sessions of the same key."),
        }),
        response: { 204: z.void() },
      },
    },
    async (request, reply) => {
      const everywhere = request.query.everywhere === "true";
      if (request.session !== null) await sessions.end(request.session, { everywhere });
      writeSessionCookie(request, reply, null);
      return reply.code(204).send();
    },
  );
}

/** @throws {Refusal} 401 for a wrong key or token, 429 after too many of them and for a key with too many sessions */
async function signIn(
  { sessions, authenticate, failed: failedKeys, failedLinks, opened, clock, note }: SignInParts,
  request: FastifyRequest,
  given: z.output<typeof SignIn>,
): Promise<SessionTokens> {
  const text = "key" in given ? given.key : given.token;
  const failed = "key" in given ? failedKeys : failedLinks;
  const network = networkOf(request);
  refuseWaiting(failed.waitMs(network, text, clock()));
  const session: NewSession = {
    userAgent: request.headers["user-agent"] ?? "",
    network,
    before: readSessionTokens(request),
  };
  const open = async () => {
    if ("token" in given) return await sessions.openByLink(given.token, session);
    const caller = await authenticate(given.key);
    if (caller === null) return null;
    refuseSpent(
      opened.take(caller.keyId, clock()),
      `This key may open at most ${QUOTA.quota} sessions in ten minutes.`,
    );
    return await sessions.openByKey(caller, session);
  };
  const tokens = await open().catch((cause: unknown) => {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal(503, { detail: "Nobody can sign in at the moment. Try again later.", cause });
  });
  if (tokens === null) {
    failed.noteFailure(network, text, clock());
    note({ action: "sign-in.refused", actor: "nobody", ...aboutRequest(request) }, clock());
    const detail =
      "key" in given
        ? "The access key is not valid. The key may be wrong, revoked or expired."
        : "The link has been used already or is older than ten minutes. `longwatch sign-in` prints a new one.";
    throw new Refusal(401, { slug: "key" in given ? "wrong-key" : "link-over", detail });
  }
  if ("key" in given) failed.noteSuccess(given.key);
  return tokens;
}
