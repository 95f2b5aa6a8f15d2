import { z } from "zod";
import { hashText } from "./traffic/random.ts";

const Position = z.strictObject({
  at: z.number(),
  id: z.tuple([z.number(), z.number(), z.number(), z.number()]),
});

/** The position of a listing: after which event, in which pass, on which page. */
export const Place = z.strictObject({
  zone: z.int(),
  day: z.string(),
  order: z.enum(["oldest", "newest"]),
  /** Null for the beginning of the day. */
  after: Position.nullable(),
  pass: z.int(),
  page: z.int(),
  issuedAt: z.number(),
  /** Distinguishes the token of a repeated page from the first one. */
  turn: z.int(),
});
export type Place = z.infer<typeof Place>;

/** Makes every token start with slashes, which reveals a client that does not encode it. */
const SLASHES = Buffer.from([0xff, 0xff, 0xff]);

function checkOf(seed: string, text: string): Buffer {
  const check = Buffer.alloc(4);
  check.writeUInt32BE(hashText(`${seed}/${text}`));
  return check;
}

/**
 * Returns a token that is opaque to clients: base64 with `/` in it and `=` at its end, of at least `leastBytes`. Valid for
 * any emulator of the same seed.
 */
export function writeToken(seed: string, place: Place, leastBytes = 0): string {
  let text = JSON.stringify(place).padEnd((leastBytes * 3) / 4);
  while ((SLASHES.length + 4 + text.length) % 3 === 0) text += " ";
  return Buffer.concat([SLASHES, checkOf(seed, text), Buffer.from(text)]).toString("base64");
}

export function readToken(seed: string, token: string): Place | undefined {
  const bytes = Buffer.from(token, "base64");
  if (bytes.toString("base64") !== token || bytes.length < 8) return undefined;
  if (!bytes.subarray(0, 3).equals(SLASHES)) return undefined;
  const text = bytes.subarray(7).toString();
  if (!bytes.subarray(3, 7).equals(checkOf(seed, text))) return undefined;
  return Place.parse(JSON.parse(text));
}
