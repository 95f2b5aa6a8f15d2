/** Masks addresses for callers who may not see them. */
import { isObject } from "#lib/json.ts";
import { readAddress, toPlainAddress } from "#model/ip-address.ts";
import { ERASED, isPseudonym, splitPseudonym } from "#people/rules/pseudonym.ts";
import { replaceAddresses } from "#people/rules/replace-addresses.ts";
import type { Mistakes, Search } from "./query/plan-search.ts";

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

/** Returns the text, such as a recommendation or a note, with every address in it masked. */
export function maskText(text: string): string {
  return replaceAddresses(text, maskAddress);
}

export function maskNullable(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : maskText(text);
}

interface CountedValue {
  readonly value: string;
  readonly count: number;
  readonly share: number;
}

/** Counted addresses, masked; networks that are the same now are counted together. */
export function maskRows(rows: readonly CountedValue[]): CountedValue[] {
  const merged = new Map<string, CountedValue>();
  for (const { value, count, share } of rows) {
    const masked = maskAddress(value);
    const seen = merged.get(masked) ?? { value: masked, count: 0, share: 0 };
    merged.set(masked, { ...seen, count: seen.count + count, share: Math.min(seen.share + share, 1) });
  }
  return [...merged.values()];
}

/** Matches an address or the beginning of one, which could only find events of that address. */
const ADDRESS_LIKE = /^(?=.*[.:])[0-9a-f.:]+$/i;

/**
 * Returns which parts of a search are forbidden for a key that sees addresses only masked, because the answer would
 * reveal the hidden part: filters and groups by `ip`, and free text that is only a piece of an address. Returns null
 * when nothing is forbidden.
 */
export function refuseHidden({
  filters,
  groupBy,
  query,
}: Pick<Search, "filters" | "groupBy" | "query">): Mistakes | null {
  const mistakes: Mistakes = {};
  const rule = "this key sees addresses only masked";
  for (const [index, { field }] of filters.entries()) {
    if (field === "ip") mistakes[`filters[${index}].field`] = [`The value "ip" is not valid: ${rule}.`];
  }
  const at = groupBy.indexOf("ip");
  if (at >= 0) mistakes[`groupBy[${at}]`] = [`The value "ip" is not valid: ${rule}.`];
  if (ADDRESS_LIKE.test(query)) mistakes["query"] = [`An address is not valid here: ${rule}.`];
  return Object.keys(mistakes).length > 0 ? mistakes : null;
}
