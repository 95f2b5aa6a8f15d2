import type { FastifyInstance, FastifyRequest } from "fastify";
import { isObject } from "../is-object.ts";
import type { Access } from "./access.ts";
import { type Authenticate, type Caller, maySeeZone } from "./caller.ts";
import { Refusal } from "./refusal.ts";

/** Longer than any key there is. */
const MAX_KEY_CHARS = 512;

/** Lets nobody in whom the route's access does not name. Adding a route that declares none throws. */
export function addGuard(app: FastifyInstance, authenticate: Authenticate): void {
  app.decorateRequest("caller", null);
  app.addHook("onRoute", ({ method, url, config }) => {
    if (config?.access === undefined) throw new Error(`route ${String(method)} ${url} declares no access`);
  });
  app.addHook("onRequest", async (request) => {
    // An address that no route has is answered alike for everybody.
    if (request.is404) return;
    const { access } = request.routeOptions.config;
    if (access === "public") return;
    request.caller = await readCaller(request, authenticate);
    if (access === undefined || !request.caller.scopes.has(access.scope)) throw scopeDenied(access);
    refuseForeignZone(request, request.caller, access.zone);
  });
}

async function readCaller(request: FastifyRequest, authenticate: Authenticate): Promise<Caller> {
  const given = request.headers.accesskey;
  const isReadable = typeof given === "string" && given !== "" && given.length <= MAX_KEY_CHARS;
  const caller = isReadable ? await authenticate(given) : null;
  if (caller === null) {
    const detail =
      given === undefined
        ? "The header AccessKey is missing."
        : "The access key is not, or no longer, valid.";
    throw new Refusal(401, { detail, headers: { "www-authenticate": "AccessKey" } });
  }
  return caller;
}

function scopeDenied(access: Access | undefined): Refusal {
  const scope = typeof access === "object" ? access.scope : "admin";
  return new Refusal(403, { detail: `This key lacks the scope ${scope}.` });
}

function refuseForeignZone(request: FastifyRequest, caller: Caller, zone: string | undefined): void {
  if (zone === undefined || caller.zoneIds === null) return;
  const ids = readZoneIds(request, zone);
  if (ids.length > 0 && ids.every((id) => maySeeZone(caller, id))) return;
  throw new Refusal(403, {
    detail: `This key is for zone ${caller.zoneIds.join(", ")} only: ${zone} must name one of them.`,
  });
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
