/** An address in a text, from `start` up to `end`, in a form that `readAddress` and `readMasked` read. */
export interface FoundAddress {
  readonly start: number;
  readonly end: number;
  readonly address: string;
}

const RUN = /[\d.]+\*?/g;
const MAX_DIGITS = 3;

/**
 * Finds every dotted IPv4 address of a text, full or masked (`203.0.113.*`), whatever surrounds it. A digit next to
 * an address belongs to its first or last part while that part stays at most 255. Of a longer part only the digits
 * that can belong to an address count. Leading zeros are read as decimal.
 */
export function findIpv4(text: string): FoundAddress[] {
  const found: FoundAddress[] = [];
  for (const { 0: run, index } of text.matchAll(RUN)) {
    if (!run.includes(".")) continue;
    const parts = toParts(run, index);
    for (let at = 0; at + 4 <= parts.length; at++) addReadings(found, parts.slice(at, at + 4));
  }
  return found;
}

interface Part {
  readonly start: number;
  readonly text: string;
}

function toParts(run: string, index: number): Part[] {
  let start = index;
  return run.split(".").map((text) => {
    const part = { start, text };
    start += text.length + 1;
    return part;
  });
}

function addReadings(found: FoundAddress[], [first, second, third, last]: readonly Part[]): void {
  if (first === undefined || second === undefined || third === undefined || last === undefined) return;
  if (!isOctet(second.text) || !isOctet(third.text)) return;
  for (const head of tailsOf(first.text)) {
    for (const tail of headsOf(last.text)) {
      const octets = [head, second.text, third.text, tail].map((octet) =>
        octet === "*" ? octet : Number(octet),
      );
      const start = first.start + first.text.length - head.length;
      found.push({ start, end: last.start + tail.length, address: octets.join(".") });
    }
  }
}

function isOctet(text: string): boolean {
  return text.length > 0 && text.length <= MAX_DIGITS && Number(text) <= 255;
}

function tailsOf(text: string): string[] {
  if (isOctet(text)) return [text];
  return [3, 2, 1].map((length) => text.slice(-length)).filter((tail) => tail !== text && isOctet(tail));
}

function headsOf(text: string): string[] {
  if (text === "*") return [text];
  const digits = text.replace("*", "");
  if (isOctet(digits)) return [digits];
  return [3, 2, 1].map((length) => digits.slice(0, length)).filter(isOctet);
}
