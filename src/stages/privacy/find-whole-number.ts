import type { FoundAddress } from "./find-ipv4.ts";

/**
 * An IPv4 address as one number, as browsers and tools accept it. Nine digits or more, hexadecimal digits, or any number
 * that is the host of a URL: dates and numbers of tickets have eight digits.
 */
const NUMBER = /(?<![\w.%-])(?:0x[0-9a-f]{7,8}|\d{9,10}|(?<=\/\/|@)\d{8})(?![\w%-]|\.\d)/gi;
const SMALLEST = 0x1_00_00_00;
const LARGEST = 0xff_ff_ff_ff;

/** Finds the IPv4 addresses of a text that are written as one number (`1734658646` is 103.100.202.86). */
export function findWholeNumbers(text: string): FoundAddress[] {
  return [...text.matchAll(NUMBER)].flatMap(({ 0: written, index }) => {
    const number = Number(written);
    if (number < SMALLEST || number > LARGEST) return [];
    const octets = [24, 16, 8, 0].map((shift) => (number >>> shift) & 0xff);
    return [{ start: index, end: index + written.length, address: octets.join(".") }];
  });
}
