import ipaddr from "ipaddr.js";

/** An IPv4 or IPv6 address; an IPv4 address in IPv6's clothes (`::ffff:203.0.113.7`) is the IPv4 address. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly bytes: readonly number[];
}

/** Null for whatever is no address: masked, a name, hostile text. */
export function readAddress(text: string): IpAddress | null {
  const trimmed = text.trim();
  // The library takes `1`, `0x7f.1` and `1.2` for addresses as well.
  if (trimmed.length > 45 || !(trimmed.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(trimmed)))
    return null;
  if (!ipaddr.isValid(trimmed)) return null;
  const address = ipaddr.process(trimmed);
  return { family: address.kind() === "ipv4" ? 4 : 6, bytes: address.toByteArray() };
}

export function addressBits(family: 4 | 6): number {
  return family === 4 ? 32 : 128;
}

/** The network an address lies in, as text that is the same for all of its addresses: `4/24/203.0.113.0`. */
export function networkOf({ family, bytes }: IpAddress, prefix: number): string {
  const masked = bytes.map((byte, index) => {
    const bits = Math.max(0, Math.min(8, prefix - 8 * index));
    return byte & (0xff << (8 - bits)) & 0xff;
  });
  return `${family}/${prefix}/${ipaddr.fromByteArray([...masked]).toNormalizedString()}`;
}

/** `203.0.113.*`, as the platform masks IPv4 addresses, by the first address it may stand for; null for anything else. */
export function readMasked(text: string): IpAddress | null {
  const [, network] = /^((?:\d{1,3}\.){3})\*$/.exec(text.trim()) ?? [];
  return network === undefined ? null : readAddress(`${network}0`);
}
