import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Clock } from "../../lib/clock.ts";
import type { Secret } from "../../lib/secret.ts";
import { Refusal } from "../errors/refusal.ts";
import type { Authenticate } from "../keys/caller.ts";
import type { FailedKeys } from "../keys/failed-keys.ts";
import { refuseWaiting } from "../keys/guard.ts";
import { ROLES } from "../keys/roles.ts";
import { isSameOrigin } from "../keys/same-origin.ts";
import type { NoteSecurityEvent } from "../keys/security-events.ts";
import { readSessionCookie, writeSessionCookie } from "../keys/session-cookie.ts";
import type { NewSession, Sessions } from "../keys/sessions.ts";
import { networkOf } from "../limits/client-network.ts";
import { aboutRequest } from "../limits/limit-requests.ts";
import { known } from "./v1/parts.ts";

const tags = ["Service"];

const SignIn = z.union([
  z.strictObject({ key: z.string().min(1).max(512).describe("An access key.") }),
  z.strictObject({ token: z.string().min(1).max(100).describe("The part of a sign-in link after #.") }),
]);

const SessionInfo = z
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
      .describe("The end of the session if nothing more is asked. Null if the request came with a key."),
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

/** `/session`: signs in, says who is signed in, signs out. */
export function addSession(app: FastifyInstance, parts: SessionRoutes): void {
  const { sessions, version, publicUrl } = parts;
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.post(
    "/session",
    {
      config: { access: "public", refuses: [401, 403, 429] },
      schema: {
        tags,
        summary: "Sign in with a key or with a one-time token",
        description:
          "The answer sets a cookie that is accepted wherever the header AccessKey is. The session has the rights of the key. It ends after 12 hours without a request, with its key, or when it is revoked.",
        body: SignIn,
        response: { 204: z.void() },
      },
    },
    async (request, reply) => {
      // A program names no origin. A page of another site must not sign its reader in.
      if (isSameOrigin(request) === false)
        throw new Refusal(403, { slug: "other-origin", detail: "A sign-in must come from this origin." });
      writeSessionCookie(request, reply, await signIn(parts, request, request.body));
      return reply.code(204).send();
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

/** @throws {Refusal} 401 for a wrong key or token, 429 for whoever sent too many of them. */
async function signIn(
  { sessions, authenticate, failed, clock, note }: SessionRoutes,
  request: FastifyRequest,
  given: z.output<typeof SignIn>,
): Promise<Secret> {
  const text = "key" in given ? given.key : given.token;
  const network = networkOf(request);
  refuseWaiting(failed.waitMs(network, text, clock()));
  const session: NewSession = {
    userAgent: request.headers["user-agent"] ?? "",
    network,
    before: readSessionCookie(request),
  };
  const open = async () => {
    if ("token" in given) return await sessions.openByLink(given.token, session);
    const caller = await authenticate(given.key);
    return caller === null ? null : await sessions.openByKey(caller, session);
  };
  const token = await open().catch((cause: unknown) => {
    throw new Refusal(503, { detail: "Nobody can sign in at the moment. Try again later.", cause });
  });
  if (token === null) {
    failed.noteFailure(network, text, clock());
    note({ action: "sign-in.refused", actor: "nobody", ...aboutRequest(request) }, clock());
    const detail =
      "key" in given
        ? "The access key is not valid. The key may be wrong, revoked or expired."
        : "The link has been used already or is older than ten minutes. `longwatch sign-in` prints a new one.";
    throw new Refusal(401, { slug: "key" in given ? "wrong-key" : "link-over", detail });
  }
  if ("key" in given) failed.noteSuccess(given.key);
  return token;
}
