import fc from "fast-check";
import { readAddress } from "#model/ip-address.ts";

/** An address and one of its spellings. */
export interface SpelledAddress {
  /** The address as `erase --ip` takes it. */
  readonly address: string;
  readonly spelling: string;
}

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
const groups = fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 });

const pad = (text: string, length: number) => text.padStart(length, "0");

/** Decimal, with leading zeros, and as IPv6 with a dotted or a hexadecimal end. */
export const spelledIpv4: fc.Arbitrary<SpelledAddress> = fc
  .tuple(octets, fc.nat(4), fc.boolean())
  .map(([bytes, form, isUpper]) => {
    const address = bytes.join(".");
    const [a, b, c, d] = bytes;
    const hex = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16)).join(":");
    const spellings = [
      address,
      bytes.map((byte) => pad(String(byte), 3)).join("."),
      `::ffff:${address}`,
      `::ffff:${hex}`,
      `0:0:0:0:0:ffff:${address}`,
    ];
    const spelling = spellings[form] ?? address;
    return { address, spelling: isUpper ? spelling.toUpperCase() : spelling };
  });

/** With and without leading zeros, with `::` for any run of zeros, with a dotted end, in either case, as in a URL. */
export const spelledIpv6: fc.Arbitrary<SpelledAddress> = fc
  .tuple(groups, fc.nat(7), fc.nat(7), fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean())
  .filter(([numbers]) => readAddress(plain(numbers))?.family === 6)
  .map(([numbers, from, to, isPadded, isDotted, isUpper, isEncoded]) => {
    const texts = numbers.map((group) => pad(group.toString(16), isPadded ? 4 : 1));
    const [seventh = 0, eighth = 0] = numbers.slice(6);
    const dotted = [seventh >> 8, seventh & 0xff, eighth >> 8, eighth & 0xff].join(".");
    const all = isDotted ? [...texts.slice(0, 6), dotted] : texts;
    const isGap =
      from < to && to < (isDotted ? 6 : 8) && numbers.slice(from, to + 1).every((group) => group === 0);
    const gapped = isGap ? `${all.slice(0, from).join(":")}::${all.slice(to + 1).join(":")}` : all.join(":");
    const cased = isUpper ? gapped.toUpperCase() : gapped;
    return { address: plain(numbers), spelling: isEncoded ? cased.replaceAll(":", "%3A") : cased };
  });

const plain = (numbers: readonly number[]) => numbers.map((group) => group.toString(16)).join(":");

/** Characters that may be next to an address. */
export const neighbour: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "binary", maxLength: 1 }),
  fc.constantFrom("", ":", ".", "-", "/", "%", "[", "]", "=", "_", "a", "f", "g", "x", "0", "1", "9", "::"),
);

/** Whether the adjacent characters make the text another address. */
export function isAnother(before: string, { spelling }: SpelledAddress, after: string): boolean {
  const text = spelling.replaceAll("%3A", ":");
  return [before + text, text + after, before + text + after].some(
    (one) => one !== text && readAddress(withoutZeros(one)) !== null,
  );
}

const withoutZeros = (text: string) => text.replaceAll(/\b0+(?=\d+\b)/g, "");
