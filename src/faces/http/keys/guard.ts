/** Lets a request pass if its key or session may do what it asks for. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Clock } from "#lib/clock.ts";
import { isObject } from "#lib/json.ts";
import type { Scope } from "#model/kinds.ts";
import { describeLack } from "#model/roles.ts";
import { type Authenticate, actorOf, type Caller, maySeeZone } from "#operations/caller.ts";
import { Refusal } from "#operations/refusal.ts";
import type { ErrorForm } from "../errors/send-problem.ts";
import { aboutRequest, type NoteSecurityEvent, type SecurityAction } from "../limits/limit-requests.ts";
import { networkOf, refuseOtherOrigins, unknownHost } from "../limits/origin.ts";
import type { HeavyWork } from "../limits/refuse.ts";
import type { FailedKeys } from "./authenticate.ts";
import { PAGE_TOKEN_HEADER, readSessionTokens, type Session, type Sessions } from "./sessions.ts";

/** Longer than any key. */
const MAX_KEY_CHARS = 512;

export interface GuardParts {
  readonly authenticate: Authenticate;
  readonly clock: Clock;
  readonly note: NoteSecurityEvent;
  readonly failed: FailedKeys;
  /** Null if nobody can sign in. */
  readonly sessions: Sessions | null;
  readonly isOwnHost: (request: FastifyRequest) => boolean;
}

/** Admits only callers that the route's access names. Adding a route without access throws. */
export function addGuard(app: FastifyInstance, parts: GuardParts): void {
  app.decorateRequest("caller", null);
  app.decorateRequest("session", null);
  app.decorateRequest("readCallerAgain");
  app.addHook("onRoute", ({ method, url, config }) => {
    if (config?.access === undefined) throw new Error(`route ${String(method)} ${url} declares no access`);
  });
  app.addHook("onRequest", async (request) => {
    const { access, isProbe } = request.routeOptions.config ?? {};
    // An address that no route has is answered alike for everybody.
    const isPublic = request.is404 || access === "public";
    // Elsewhere, whoever sends a key is identified by it.
    const isUnproven = isPublic || !hasKey(request);
    if (isUnproven && isProbe !== true && !parts.isOwnHost(request)) await requireKey(request, parts);
    if (!isPublic) await identify(request, parts);
  });
}

/** Checks scope and zones after the limits of the key, so that denied requests use up the key's quota as well. */
export function addPermissions(
  app: FastifyInstance,
  { clock, note }: Pick<GuardParts, "clock" | "note">,
): void {
  app.addHook("onRequest", async (request) => {
    const { access } = request.routeOptions.config;
    if (request.is404 || access === "public") return;
    const deny = (action: SecurityAction, detail: string) => {
      note({ action, actor: actorOf(request.caller), ...aboutRequest(request) }, clock());
      return new Refusal(403, { detail });
    };
    if (access === undefined || request.caller?.scopes.has(access.scope) !== true)
      throw deny("scope.denied", describeLack(access?.scope ?? "admin"));
    if (access.withKey === true && request.session !== null)
      throw new Refusal(403, {
        slug: "key-needed",
        detail: "A session alone cannot do this. Enter the key again, or send it in the header AccessKey.",
      });
    const only = findForeignZone(request, request.caller, access);
    if (only !== null) throw deny("zone.denied", only);
  });
}

/** @throws {Refusal} 421 unless the request, which is to another host's name, has a valid key */
async function requireKey(request: FastifyRequest, parts: GuardParts): Promise<void> {
  if (!hasKey(request)) throw unknownHost();
  try {
    await readCaller(request, readKey(request), parts);
  } catch (thrown) {
    throw thrown instanceof Refusal && thrown.statusCode === 401 ? unknownHost() : thrown;
  }
}

/** Finds the caller. The header AccessKey comes before the cookie: a client that sends both means the key. */
async function identify(request: FastifyRequest, parts: GuardParts): Promise<void> {
  const { sessions, authenticate } = parts;
  const given = hasKey(request) ? [] : readSessionTokens(request);
  if (sessions === null || given.length === 0) {
    const key = readKey(request);
    request.caller = await readCaller(request, key, parts);
    request.readCallerAgain = () => authenticate(key);
    return;
  }
  refuseOtherOrigins(request);
  if (request.headers[PAGE_TOKEN_HEADER] === undefined)
    throw new Refusal(401, {
      slug: "page-token-missing",
      detail:
        "The request has the cookie of a session, but no header X-Page-Token. Only the page that signed in knows its value. Sign in there, or send the header AccessKey.",
    });
  // Its secrets have 256 random bits and nobody guesses them. A page whose session is over must not lock its reader out.
  const session = await ask(sessions.find, given);
  if (session === null)
    throw new Refusal(401, {
      slug: "session-over",
      detail:
        "The session is over: it was ended, was not used for 12 hours, is seven days old (24 hours for an admin), or its key or the issuer's ID token is no longer valid.",
    });
  if (request.headers["x-user-active"] === "true") sessions.noteUse(session);
  request.session = session;
  request.caller = session.caller;
  request.readCallerAgain = async () => (await sessions.find(given))?.caller ?? null;
}

async function readCaller(
  request: FastifyRequest,
  key: string,
  { authenticate, clock, note, failed }: GuardParts,
): Promise<Caller> {
  const network = networkOf(request);
  refuseWaiting(failed.waitMs(network, key, clock()));
  const caller = key.length <= MAX_KEY_CHARS ? await ask(authenticate, key) : null;
  if (caller === null) {
    failed.noteFailure(network, key, clock());
    note({ action: "key.refused", actor: "nobody", ...aboutRequest(request) }, clock());
    throw unauthorized(request, "The access key is not valid. The key may be wrong, revoked or expired.");
  }
  failed.noteSuccess(key);
  return caller;
}

/** @throws {Refusal} 429 if the network has to wait before its next key or one-time token is checked */
export function refuseWaiting(waitMs: number): void {
  if (waitMs <= 0) return;
  const headers = { "retry-after": String(Math.ceil(waitMs / 1_000)) };
  throw new Refusal(429, {
    detail: "This address has sent too many wrong access keys. Wait before you try again.",
    headers,
  });
}

function hasKey({ headers, routeOptions }: FastifyRequest): boolean {
  const takesBearer = routeOptions.config?.errorForm === undefined;
  return headers.accesskey !== undefined || (takesBearer && headers.authorization !== undefined);
}

/**
 * Returns the key of the request. The header AccessKey comes first. Longwatch's own routes also take a bearer token,
 * because scrapers and dashboards may have no other header. The platform's routes do not, like the platform. Routes for
 * firewalls also take the key as a password.
 */
function readKey(request: FastifyRequest): string {
  const { headers, routeOptions } = request;
  if (headers.accesskey !== undefined) return String(headers.accesskey);
  const { errorForm, takesBasic = false } = routeOptions.config ?? {};
  if (errorForm !== undefined) throw unauthorized(request, "The header AccessKey is missing.");
  const given = headers.authorization ?? "";
  const [, token] = /^Bearer +(\S+) *$/i.exec(given) ?? [];
  const key = token ?? (takesBasic ? readPassword(given) : undefined);
  if (key !== undefined) return key;
  const others = `the header Authorization: Bearer${takesBasic ? " or Basic" : ""}`;
  throw unauthorized(request, `The request has neither the header AccessKey nor ${others}.`);
}

/** Returns the password of HTTP Basic (RFC 7617), whatever the user's name; undefined if there is none. */
function readPassword(authorization: string): string | undefined {
  const [, encoded] = /^Basic +([\w+/-]+={0,2}) *$/i.exec(authorization) ?? [];
  const text = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString();
  return text.includes(":") ? text.slice(text.indexOf(":") + 1) : undefined;
}

async function ask<T, Given>(find: (given: Given) => Promise<T>, given: Given): Promise<T> {
  try {
    return await find(given);
  } catch (cause) {
    throw new Refusal(503, {
      detail: "Longwatch cannot check access keys at the moment. Try again later.",
      cause,
    });
  }
}

/** Some clients send a password only after a challenge. */
function unauthorized({ routeOptions }: FastifyRequest, detail: string): Refusal {
  const basic = routeOptions.config?.takesBasic === true ? ', Basic realm="longwatch", charset="UTF-8"' : "";
  return new Refusal(401, { detail, headers: { "www-authenticate": `AccessKey${basic}` } });
}

/** Returns why the caller may not see the requested zone; null if the caller may see it. */
function findForeignZone(request: FastifyRequest, caller: Caller, access: Access): string | null {
  const zone = access === "public" ? undefined : access.zone;
  if (zone === undefined || caller.zoneIds === null) return null;
  const ids = readZoneIds(request, zone, caller.zoneIds);
  if (ids.length > 0 && ids.every((id) => maySeeZone(caller, id))) return null;
  return `This key is for zone ${caller.zoneIds.join(", ")} only. The parameter ${zone} must name such a zone.`;
}

/** Returns the zone ids as the handler will read them; NaN, which is no zone, if a text is not a plain number. */
function readZoneIds(
  { params, query }: FastifyRequest,
  zone: string,
  visible: readonly number[],
): readonly number[] {
  const places = [params, query].filter(isObject);
  const given = places.find((place) => Object.hasOwn(place, zone))?.[zone];
  if (given === undefined) return [];
  // An answer about all zones is about those that the caller may see.
  if (given === "all") return visible;
  return [given]
    .flat()
    .flatMap((text) => (typeof text === "string" ? text.split(",").map(toZoneId) : [Number.NaN]));
}

function toZoneId(text: string): number {
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
}

/**
 * The callers that may use a route. `zone` names the path parameter or query member that contains the zone's id. A key
 * for some zones is refused if that is another zone or missing. A route whose body names the zone, or that answers for
 * all of the caller's zones, omits `zone` and checks `caller.zoneIds` itself.
 */
export type Access =
  | "public"
  | {
      readonly scope: Scope;
      readonly zone?: string;
      /** Refuses a session: the person must enter the key again. */
      readonly withKey?: true;
    };

declare module "fastify" {
  interface FastifyContextConfig {
    access?: Access;
    /** The form of the platform's errors, on the platform's routes. Longwatch's own routes omit it. */
    errorForm?: ErrorForm;
    /** The key may also be the password of HTTP Basic, because firewalls can send nothing else. */
    takesBasic?: true;
    /** Limits how many requests of such routes one key may have in progress. */
    heavy?: HeavyWork;
    /** Marks routes that balancers and supervisors may request as often as they like. */
    isProbe?: true;
  }
  interface FastifyRequest {
    /** Null on public routes. */
    caller: Caller | null;
    /** Null on public routes, and if the request came with a key. */
    session: Session | null;
    /** Looks the caller up again, because an answer may outlast the key. Not set on public routes. */
    readCallerAgain: () => Promise<Caller | null>;
  }
}
