import { z } from "zod";

/**
 * Text that may become one segment of a path. Dots alone would lead to another operation, and half a surrogate pair
 * cannot be encoded.
 */
export const PathText = pathText(4_096);

/** The platform does not document how long a continuation token may be. Few servers accept a longer address. */
export const MAX_TOKEN_BYTES = 65_536;

export const TokenText = pathText(MAX_TOKEN_BYTES);

function pathText(maxBytes: number) {
  return z
    .string()
    .min(1)
    .refine((text) => Buffer.byteLength(text) <= maxBytes, `must have at most ${maxBytes} bytes`)
    .refine((text) => text !== "." && text !== "..", "must not be a dot segment")
    .refine((text) => !/\p{Cs}/u.test(text), "must be well-formed Unicode");
}

/** Percent-encodes everything that a segment may not hold, including `/` and `=` of tokens. */
export function toSegment(text: string | number): string {
  return encodeURIComponent(text);
}
