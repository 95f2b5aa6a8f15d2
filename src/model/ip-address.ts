/** Addresses: how they are read, their networks, and which ones belong to no visitor. */
import ipaddr from "ipaddr.js";
import type { AddressFamily, GradedBy, Severity } from "./kinds.ts";

/** An IPv4 or IPv6 address. An IPv4-mapped IPv6 address (`::ffff:203.0.113.7`) counts as the IPv4 address. */
export interface IpAddress {
  readonly family: AddressFamily;
  readonly bytes: readonly number[];
}

/**
 * Returns the address, or null for any other text: masked, a name, hostile text. The library would throw and catch an
 * error for each of those, takes ten times as long, and accepts `1`, `0x7f.1` and `1.2`.
 */
export function readAddress(text: string): IpAddress | null {
  const trimmed = text.trim();
  if (trimmed.length > 45) return null;
  if (!trimmed.includes(":")) return readIpv4(trimmed);
  const [, whole, begun = "", dotted = ""] = SPELLED_IPV6.exec(trimmed) ?? [];
  if (whole !== undefined) return readIpv6(whole);
  const ipv4 = readIpv4(dotted);
  // The old form of a mapped address: `::203.0.113.7`.
  if (ipv4 === null || begun === "::") return ipv4;
  return readIpv6(begun + ipv4.bytes.map((byte, i) => (i === 2 ? ":" : "") + toHex(byte)).join(""));
}

const toHex = (byte: number) => byte.toString(16).padStart(2, "0");

const IPV4 = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/;
/** Matches groups and colons, or those and an IPv4 address at the end. A zone (`%eth0`) is left out. */
const SPELLED_IPV6 = /^(?:([0-9a-f:]+)|([0-9a-f:]*:)([\d.]+))(?:%[0-9a-z]+)?$/i;

function readIpv4(text: string): IpAddress | null {
  const bytes = IPV4.exec(text)?.slice(1).map(Number);
  return bytes?.every((byte) => byte <= 255) === true ? { family: 4, bytes } : null;
}

const GROUPS = 8;
/** `::ffff:0:0/96` as groups. */
const MAPPED = [0, 0, 0, 0, 0, 0xffff];

function readIpv6(text: string): IpAddress | null {
  const [head = "", tail, more] = text.split("::");
  if (more !== undefined) return null;
  const before = readGroups(head);
  const after = tail === undefined ? [] : readGroups(tail);
  if (before === null || after === null) return null;
  const missing = GROUPS - before.length - after.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...before, ...Array<number>(missing).fill(0), ...after];
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff]);
  const isMapped = MAPPED.every((group, index) => groups[index] === group);
  return isMapped ? { family: 4, bytes: bytes.slice(12) } : { family: 6, bytes };
}

/** Returns null if a group is empty or too long. */
function readGroups(text: string): number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  for (const group of text.split(":")) {
    if (group.length === 0 || group.length > 4) return null;
    groups.push(Number.parseInt(group, 16));
  }
  return groups;
}

/** An IPv4 address with a port, or an address in brackets. */
const WITH_PORT = /^(?:([\d.]+):\d{1,5}|\[([^\]]+)\](?::\d{1,5})?)$/;

/** Returns a sender's address without port and brackets, the first one of a list. */
function undress(text: string): string {
  const [first = ""] = text.split(",", 1);
  const [, ipv4, bracketed] = WITH_PORT.exec(first.trim()) ?? [];
  return ipv4 ?? bracketed ?? first.trim();
}

/**
 * Returns the sender's address of a text that the platform or a proxy wrote: alone, with a port (`203.0.113.9:51234`,
 * `[2001:db8::9]:443`), or as the first of a forwarded list (`203.0.113.9, 10.0.0.1`); null for any other text. The later
 * addresses of a list are proxies. Every part that compares senders uses this function, so that all forms are one person.
 */
export function readSentAddress(text: string): IpAddress | null {
  return readAddress(undress(text));
}

/**
 * Returns a sender's address as the column `ip` holds it: alone, and as IPv4 if it is mapped. IPv6 keeps the platform's
 * spelling, in which searches answer. Returns any other text as it is.
 */
export function toPlainAddress(text: string): string {
  if (!/[:,[]/.test(text)) return text;
  const address = readSentAddress(text);
  if (address === null) return text;
  return address.family === 4 ? address.bytes.join(".") : undress(text);
}

export function addressBits(family: AddressFamily): number {
  return family === 4 ? 32 : 128;
}

/** Returns the network of an address as text that is the same for all of its addresses: `4/24/203.0.113.0`. */
export function networkOf({ family, bytes }: IpAddress, prefix: number): string {
  const masked = bytes.map((byte, index) => {
    const bits = Math.max(0, Math.min(8, prefix - 8 * index));
    return byte & (0xff << (8 - bits)) & 0xff;
  });
  return `${family}/${prefix}/${ipaddr.fromByteArray([...masked]).toNormalizedString()}`;
}

/**
 * Returns the first address that a masked IPv4 address (`203.0.113.*`, the platform's form) may stand for; null for
 * any other text.
 */
export function readMasked(text: string): IpAddress | null {
  const [, network] = /^((?:\d{1,3}\.){3})\*$/.exec(text.trim()) ?? [];
  return network === undefined ? null : readAddress(`${network}0`);
}

/** If fewer addresses than this send most of a rule's spike, it is listed and notifies nobody, unless it pages. */
export const FEW_ADDRESSES = 3;

/** A rule's spike needs this many different addresses to page anyone. */
export const MANY_ADDRESSES = 12;

interface SentSpike {
  readonly severity: Severity;
  readonly addresses?: number | null | undefined;
  readonly mainSenders?: number | null | undefined;
  readonly gradedBy?: GradedBy | null | undefined;
}

/** Returns whether few addresses send the spike, or send most of it while it is not far above the usual. */
export function isSentByFew({ severity, addresses, mainSenders, gradedBy }: SentSpike, few: number): boolean {
  if (severity === "critical" || addresses == null) return false;
  return addresses < few || (gradedBy === "score" && (mainSenders ?? few) < few);
}

const NO_ADDRESS =
  /^(?:|-|unknown|unavailable|anonymous|anonymized|anonymised|masked|erased|null|undefined|0\.0\.0\.0|::|::0|127(?:\.\d{1,3}){3}|::1|\*(?:\.\*){0,3})$/i;

/**
 * Returns whether a text that stands for an address is no visitor's: the platform anonymises addresses, the edge called itself, or
 * the address is not known. Such events have no sender that could be counted, named or blocked.
 */
export function isNoVisitor(ip: string): boolean {
  return NO_ADDRESS.test(ip.trim());
}

/** Returns the number of a network; null if the text begins with none. The platform may add the name: AS64500 Example Hosting. */
export function readNetworkNumber(text: string): string | null {
  return /^(?:AS)?(\d+)\b/i.exec(text)?.[1] ?? null;
}

/** Returns whether a text stands for many addresses: `203.0.113.*`, `203.0.113.0`, a prefix with a length. */
export function isNetworkText(ip: string): boolean {
  return /^\d{1,3}\.\d{1,3}\.\d{1,3}\.(?:0|\*|x+)$/i.test(ip) || ip.includes("/") || /\*/.test(ip);
}
