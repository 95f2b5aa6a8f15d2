import { isObject } from "#lib/json.ts";
import { readAddress, toPlainAddress } from "#model/ip-address.ts";
import { ERASED, isPseudonym, splitPseudonym } from "#stages/privacy/pseudonym.ts";

const MASKED_IPV6 = /^(?:(?:[0-9a-f]{1,4}:){1,3}|:):\*$/i;

/**
 * Returns an address without the part that identifies one visitor. Of IPv4 the last octet is removed, as in the
 * platform's records. Of IPv6 only the first 48 bits stay (of 6to4 16 bits, because an IPv4 address follows), and of a
 * pseudonym only the network's part. A text that is no address is hidden.
 */
export function maskAddress(text: string): string {
  const address = toPlainAddress(text);
  if (address === "" || address === ERASED) return address;
  if (isPseudonym(address)) return `anon-${splitPseudonym(address).network}-*`;
  const octets = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.(?:\d{1,3}|\*)$/.exec(address);
  if (octets !== null) return `${octets[1]}.*`;
  const isIpv6 = !address.includes("%") && readAddress(address)?.family === 6;
  if (!isIpv6 && !MASKED_IPV6.test(address)) return "*";
  const [head = ""] = address.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  return `${groups.slice(0, groups[0] === "2002" ? 1 : 3).join(":")}::*`;
}

/**
 * Returns the record of a list entry without the visitor's data: no body, no headers, no matched text. Returns null
 * without a record.
 */
export function maskRecord(log: string): string | null {
  let record: unknown;
  try {
    record = JSON.parse(log);
  } catch {
    return null;
  }
  if (!isObject(record)) return null;
  const { ServerZoneId = null, Message = null, Url = null, RemoteIp } = record;
  return JSON.stringify({
    ServerZoneId: typeof ServerZoneId === "number" ? ServerZoneId : null,
    Message: typeof Message === "string" ? Message : null,
    Url: typeof Url === "string" ? Url : null,
    RemoteIp: typeof RemoteIp === "string" ? maskAddress(RemoteIp) : null,
    UrlEncodedBody: null,
    Headers: [],
    TriggerMatch: null,
  });
}
