import type { Dice } from "./dice.ts";
import { FORM, type Request } from "./match-request.ts";
import { ruleOf } from "./rules.ts";
import type { Event } from "./stage.ts";
import { textOf } from "./texts.ts";
import type { Zone } from "./zones.ts";

const STATUS = { block: "Blocked", challenge: "Challenged", log: "Logged" } as const;
const SERVERS = [
  [11, "DE"],
  [14, "NY"],
  [23, "LA"],
  [31, "UK"],
] as const;

const mask = (ip: string) => (ip.includes(":") ? ip : ip.replace(/\d+$/, "*"));

/** Returns the address as the record and the search's row of a zone show it. */
export function shownAddress({ addresses }: Zone, ip: string): { record: string; row: string } {
  if (addresses === "anonymous") return { record: "0.0.0.0", row: "0.0.0.0" };
  return { record: mask(ip), row: addresses === "masked" ? mask(ip) : ip };
}

function urlOf({ site }: Zone, { host, path, query = [] }: Request): string {
  const text = query
    .map(([name, value]) => `${name}=${encodeURIComponent(textOf(value).toWellFormed())}`)
    .join("&");
  return `https://${host || site.host}${path}${text === "" ? "" : `?${text}`}`;
}

/** Returns the line of an event, as one entry of the platform's list with the values of a search's row. */
export function toLine(zone: Zone, event: Event, dice: Dice): string {
  const { at, request, hit, action } = event;
  const { client } = request;
  const { feature, message } = ruleOf(hit.rule);
  const url = urlOf(zone, request);
  const address = shownAddress(zone, client.ip);
  const [serverId, serverZone] = dice.pick(SERVERS);
  const log = {
    ServerZoneId: serverId,
    Message: hit.rule === "949110" ? `${message} (Total Score: ${hit.matched})` : message,
    Url: url,
    RemoteIp: address.record,
    UrlEncodedBody: zone.hasBodies ? bodyOf(request) : null,
    Headers: headersOf(zone, event),
    TriggerMatch: {
      Key: zone.namesVariable ? hit.variable : operatorOf(hit.rule),
      Value: hit.matched.toWellFormed(),
    },
  };
  const fields = {
    feature,
    ruleId: hit.rule,
    ip: address.row,
    ja4: client.ja4,
    ua: client.ua,
    url,
    asn: client.asn,
    country: client.country,
    action,
  };
  const id = dice.hex(32);
  return `${JSON.stringify({
    zone: zone.id,
    logId: `${id.slice(0, 8)}-${id.slice(8, 12)}-4${id.slice(13, 16)}-a${id.slice(17, 20)}-${id.slice(20)}`,
    timestamp: at,
    log: JSON.stringify(log),
    labels: {
      asn: client.asn,
      country: client.country,
      ruleId: hit.rule,
      severity: "",
      method: request.method,
      ruleGroup: "",
      status: STATUS[action],
      serverZone,
    },
    ...(zone.addresses === "list" ? {} : { fields }),
  })}\n`;
}

const operatorOf = (rule: string) =>
  /^94[12]100/.test(rule) ? "DETECT" : /^9[125]/.test(rule) ? "PM" : "RX";

function bodyOf({ body }: Request): string | null {
  if (body === undefined) return null;
  const { parts, type, isBroken = false } = body;
  if (type !== null && type.includes("json")) {
    const text = JSON.stringify(Object.fromEntries(parts.map(([name, text]) => [name, textOf(text)])));
    return encodeURIComponent((isBroken ? text.slice(0, -2) : text).toWellFormed());
  }
  return parts.map(([name, text]) => `${name}=${encodeURIComponent(textOf(text).toWellFormed())}`).join("&");
}

function headersOf({ site, hasHeaders }: Zone, { request, requestId }: Event) {
  const { client, host, body, cookies = [], referer, headers = [] } = request;
  const own = hasHeaders
    ? [
        ...(client.sendsAccept && !headers.some(([name]) => name === "Accept")
          ? [["Accept", client.isBrowser ? "text/html,*/*;q=0.8" : "*/*"]]
          : []),
        ...cookieOf(client.session, cookies),
        ...refererOf(client.isBrowser, referer, site.host),
        ...(client.token === undefined ? [] : [["Authorization", `Bearer ${client.token}`]]),
        ...headers.map(([name, text]) => [name, textOf(text)]),
      ]
    : [];
  const type = body === undefined ? null : body.type === undefined ? FORM : body.type;
  return [
    ["Host", host ?? site.host],
    ["User-Agent", client.ua],
    ...own,
    ...(type === null ? [] : [["Content-Type", type]]),
    ["CDN-RequestId", requestId],
  ].map(([Name = "", Value = ""]) => ({ Name, Value: Value.toWellFormed() }));
}

function cookieOf(session: string | null, cookies: NonNullable<Request["cookies"]>): [string, string][] {
  const all = [
    ...(session === null ? [] : [`session=${session}`]),
    ...cookies.map(([name, text]) => `${name}=${textOf(text)}`),
  ];
  return all.length === 0 ? [] : [["Cookie", all.join("; ")]];
}

function refererOf(isBrowser: boolean, referer: string | null | undefined, host: string): [string, string][] {
  if (referer === null || (referer === undefined && !isBrowser)) return [];
  return [["Referer", referer ?? `https://${host}/`]];
}
