import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { createRateLimiter, type RateLimiter } from "#lib/rate-limiter.ts";
import type { SessionTokens } from "#model/access-key.ts";
import type { ActionWords } from "#model/action-class.ts";
import { ROLES } from "#model/kinds.ts";
import { describeLack } from "#model/roles.ts";
import type { Authenticate, Caller } from "#operations/caller.ts";
import { known } from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { createFailedKeys, type FailedKeys } from "../keys/authenticate.ts";
import { refuseWaiting } from "../keys/guard.ts";
import {
  type NewSession,
  type People,
  readCookies,
  readSessionTokens,
  type Sessions,
  writeCookie,
} from "../keys/sessions.ts";
import { aboutRequest, type NoteSecurityEvent, refuseSpent } from "../limits/limit-requests.ts";
import { isSameOrigin, networkOf } from "../limits/origin.ts";

const tags = ["Service"];

const SignIn = z.union([
  z.strictObject({ key: z.string().min(1).max(512).describe("An access key.") }),
  z.strictObject({ token: z.string().min(1).max(100).describe("The part of a sign-in link after #.") }),
  z.strictObject({
    answer: z.string().min(1).max(8_192).describe("The issuer's answer: the query of /sign-in."),
  }),
]);

const IssuerLabel = z.object({ label: z.string().nullable() });

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
    actions: z
      .object({ stopped: z.array(z.string()), through: z.array(z.string()) })
      .describe("The words of the configuration file for what became of a request."),
  })
  .meta({ id: "Session" });

export interface SessionRoutes {
  readonly sessions: Sessions;
  readonly people: People;
  readonly authenticate: Authenticate;
  readonly failed: FailedKeys;
  readonly clock: Clock;
  readonly note: NoteSecurityEvent;
  readonly version: string;
  readonly publicUrl: string | null;
  readonly actions: ActionWords;
}

/** Limit of the sessions that one key opens. Each session adds an audit entry that is kept for good. */
const QUOTA = { quota: 30, windowMs: 10 * 60_000, maxKeys: 1_000 };

interface SignInParts extends SessionRoutes {
  readonly failedLinks: FailedKeys;
  readonly opened: RateLimiter;
}

/** Adds `/session`: sign in, show who is signed in, sign out. */
export function addSession(app: FastifyInstance, parts: SessionRoutes): void {
  const { sessions, people, version, publicUrl, actions } = parts;
  const signingIn = { ...parts, failedLinks: createFailedKeys(), opened: createRateLimiter(QUOTA) };
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.post(
    "/session",
    {
      config: { access: "public", refuses: [401, 403, 404, 429, 502] },
      schema: {
        tags,
        summary: "Sign in with a key, with a one-time token or with the answer of the issuer",
        description:
          "The answer sets a cookie, and its body has the session's second secret. Both together are accepted wherever the header AccessKey is: a browser sends the cookie to every port of the host, so the cookie alone opens nothing. A request with the header X-User-Active: true counts as use. The session has the rights of the key, or those that the configuration file gives the person. It ends after 12 hours without use, after seven days (24 hours with the role admin), with its key or the issuer's ID token, or when it is revoked. One key or person can open 30 sessions in ten minutes.",
        body: SignIn,
        response: {
          200: z.object({ pageToken: z.string().describe("The value of the header X-Page-Token.") }),
        },
      },
    },
    async (request, reply) => {
      refuseForeignSignIn(request);
      // It is of no more use, whatever the answer.
      if ("answer" in request.body) writeCookie(request, reply, "longwatch_sign_in", null);
      const { cookie, page } = await signIn(signingIn, request, request.body);
      writeCookie(request, reply, "longwatch_session", cookie);
      return { pageToken: page.reveal() };
    },
  );
  typed.get(
    "/session/issuer",
    {
      config: { access: "public" },
      schema: {
        tags,
        summary: "Show the issuer's name; null if there is none",
        response: { 200: IssuerLabel },
      },
    },
    async () => ({ label: people.label() }),
  );
  typed.post(
    "/session/issuer",
    {
      config: { access: "public", refuses: [403, 404, 502] },
      schema: {
        tags,
        summary: "Start a sign-in at the issuer",
        description:
          "The answer sets a cookie for ten minutes. The issuer sends the browser back to /sign-in.",
        response: { 200: z.object({ url: z.string().describe("The address to which the browser goes.") }) },
      },
    },
    async (request, reply) => {
      refuseForeignSignIn(request);
      const { url, secret } = await people.begin();
      writeCookie(request, reply, "longwatch_sign_in", secret);
      return { url };
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
        actions: { stopped: [...actions.stopped], through: [...actions.through] },
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
            .describe("true: also end all other sessions of the same key or person."),
        }),
        response: {
          200: z.object({ signOutUrl: z.string().describe("Where the person signs out at the issuer.") }),
          204: z.void(),
        },
      },
    },
    async (request, reply) => {
      const everywhere = request.query.everywhere === "true";
      const { session } = request;
      const idToken = session === null ? null : await sessions.end(session, { everywhere });
      writeCookie(request, reply, "longwatch_session", null);
      const signOutUrl = idToken === null ? null : await people.signOutUrl(idToken);
      if (signOutUrl !== null) return { signOutUrl };
      return reply.code(204).send();
    },
  );
}

/** A program names no origin. A page of another site must not sign its reader in. */
function refuseForeignSignIn(request: FastifyRequest): void {
  if (isSameOrigin(request) === false)
    throw new Refusal(403, { slug: "other-origin", detail: "A sign-in must come from this origin." });
}

/** @throws {Refusal} 401 for a wrong key, token or answer, 429 after too many of them and for a key with too many sessions */
async function signIn(
  { sessions, people, authenticate, failed: failedKeys, failedLinks, opened, clock, note }: SignInParts,
  request: FastifyRequest,
  given: z.output<typeof SignIn>,
): Promise<SessionTokens> {
  const text = "key" in given ? given.key : "token" in given ? given.token : given.answer;
  const failed = "key" in given ? failedKeys : failedLinks;
  const network = networkOf(request);
  refuseWaiting(failed.waitMs(network, text, clock()));
  const session: NewSession = {
    userAgent: request.headers["user-agent"] ?? "",
    network,
    before: readSessionTokens(request),
  };
  const takeTurn = ({ keyId }: Caller) => {
    const rule = `This key or person may open at most ${QUOTA.quota} sessions in ten minutes.`;
    refuseSpent(opened.take(keyId, clock()), rule);
  };
  const open = async () => {
    if ("token" in given) return (await sessions.openByLink(given.token, session)) ?? refuse("link-over");
    if ("answer" in given) {
      const signed = await people.finish(readCookies(request, "longwatch_sign_in"), given.answer);
      takeTurn(signed.caller);
      return (await sessions.openByIssuer(signed, session)) ?? refuse("sign-in-over");
    }
    const caller = (await authenticate(given.key)) ?? refuse("wrong-key");
    if (!caller.scopes.has("read")) throw new Refusal(403, { detail: describeLack("read") });
    takeTurn(caller);
    return await sessions.openByKey(caller, session);
  };
  const tokens = await open().catch((cause: unknown) => {
    if (!(cause instanceof Refusal))
      throw new Refusal(503, { detail: "Nobody can sign in at the moment. Try again later.", cause });
    // The issuer knows a person without a role (403), so nobody guesses.
    if (cause.statusCode === 401) failed.noteFailure(network, text, clock());
    if (cause.statusCode === 401 || cause.statusCode === 403)
      note({ action: "sign-in.refused", actor: "nobody", ...aboutRequest(request) }, clock());
    throw cause;
  });
  if ("key" in given) failed.noteSuccess(given.key);
  return tokens;
}

const REFUSED = {
  "wrong-key": "The access key is not valid. The key may be wrong, revoked or expired.",
  "link-over":
    "The link has been used already or is older than ten minutes. `longwatch sign-in` prints a new one.",
  "sign-in-over": "This sign-in has been used already. Sign in again.",
};

function refuse(slug: keyof typeof REFUSED): never {
  throw new Refusal(401, { slug, detail: REFUSED[slug] });
}
