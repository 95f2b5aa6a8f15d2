import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Clock } from "../../lib/clock.ts";
import { isObject } from "../../lib/is-object.ts";
import { Refusal } from "../errors/refusal.ts";
import { networkOf } from "../limits/client-network.ts";
import { aboutRequest } from "../limits/limit-requests.ts";
import type { Access } from "./access.ts";
import { type Authenticate, actorOf, type Caller, maySeeZone } from "./caller.ts";
import { createFailedKeys, type FailedKeys } from "./failed-keys.ts";
import type { NoteSecurityEvent, SecurityAction } from "./security-events.ts";

/** Longer than any key there is. */
const MAX_KEY_CHARS = 512;

export interface GuardParts {
  readonly authenticate: Authenticate;
  readonly clock: Clock;
  readonly note: NoteSecurityEvent;
  /** Hashes of keys that were good before the start, the ones used last first. */
  readonly knownKeys?: readonly Buffer[] | undefined;
}

/** Lets nobody in whom the route's access does not name. Adding a route that declares none throws. */
export function addGuard(app: FastifyInstance, parts: GuardParts): void {
  const failed = createFailedKeys(parts.knownKeys);
  app.decorateRequest("caller", null);
  app.addHook("onRoute", ({ method, url, config }) => {
    if (config?.access === undefined) throw new Error(`route ${String(method)} ${url} declares no access`);
  });
  app.addHook("onRequest", async (request) => {
    // An address that no route has is answered alike for everybody.
    if (request.is404) return;
    const { access } = request.routeOptions.config;
    if (access !== "public") request.caller = await readCaller(request, failed, parts);
  });
}

/** Comes after the limits of the key: whoever is denied over and over spends them. */
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
      throw deny("scope.denied", `This key lacks the scope ${access?.scope ?? "admin"}.`);
    const only = findForeignZone(request, request.caller, access);
    if (only !== null) throw deny("zone.denied", only);
  });
}

async function readCaller(
  request: FastifyRequest,
  failed: FailedKeys,
  { authenticate, clock, note }: GuardParts,
): Promise<Caller> {
  const key = readKey(request);
  const network = networkOf(request);
  const waitMs = failed.waitMs(network, key, clock());
  if (waitMs > 0) {
    const headers = { "retry-after": String(Math.ceil(waitMs / 1_000)) };
    throw new Refusal(429, {
      detail: "This address has sent too many wrong access keys. Wait before you try again.",
      headers,
    });
  }
  const caller = key.length <= MAX_KEY_CHARS ? await ask(authenticate, key) : null;
  if (caller === null) {
    failed.noteFailure(network, key, clock());
    note({ action: "key.refused", actor: "nobody", ...aboutRequest(request) }, clock());
    throw unauthorized("The access key is not valid. The key may be wrong, revoked or expired.");
  }
  failed.noteSuccess(key);
  return caller;
}

/**
 * Returns the key of the request. The header AccessKey comes first. Longwatch's own routes also take a bearer token,
 * because scrapers and dashboards may have no other header. The platform's routes do not, like the platform.
 */
function readKey({ headers, routeOptions }: FastifyRequest): string {
  if (headers.accesskey !== undefined) return String(headers.accesskey);
  if (routeOptions.config.errorForm !== undefined) throw unauthorized("The header AccessKey is missing.");
  const [, token] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? "") ?? [];
  if (token !== undefined) return token;
  throw unauthorized("The request has neither the header AccessKey nor the header Authorization: Bearer.");
}

async function ask(authenticate: Authenticate, key: string): Promise<Caller | null> {
  try {
    return await authenticate(key);
  } catch (cause) {
    throw new Refusal(503, {
      detail: "Longwatch cannot check access keys at the moment. Try again later.",
      cause,
    });
  }
}

function unauthorized(detail: string): Refusal {
  return new Refusal(401, { detail, headers: { "www-authenticate": "AccessKey" } });
}

/** What is wrong with the zone that is asked for; null where nothing is. */
function findForeignZone(request: FastifyRequest, caller: Caller, access: Access): string | null {
  const zone = access === "public" ? undefined : access.zone;
  if (zone === undefined || caller.zoneIds === null) return null;
  const ids = readZoneIds(request, zone);
  if (ids.length > 0 && ids.every((id) => maySeeZone(caller, id))) return null;
  return `This key is for zone ${caller.zoneIds.join(", ")} only. The parameter ${zone} must name such a zone.`;
}

/** As the handler will read them; NaN, which is no zone, for whatever is not plainly a number. */
function readZoneIds({ params, query }: FastifyRequest, zone: string): number[] {
  const places = [params, query].filter(isObject);
  const given = places.find((place) => Object.hasOwn(place, zone))?.[zone];
  if (given === undefined) return [];
  return [given]
    .flat()
    .flatMap((text) => (typeof text === "string" ? text.split(",").map(toZoneId) : [Number.NaN]));
}

function toZoneId(text: string): number {
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
}
