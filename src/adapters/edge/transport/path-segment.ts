import { z } from "zod";

/**
 * Text that may become one segment of a path. Dots alone would lead to another operation, and half a surrogate pair
 * cannot be encoded.
 */
export const PathText = z
  .string()
  .min(1)
  .max(4_096)
  .refine((text) => text !== "." && text !== "..", "must not be a dot segment")
  .refine((text) => !/\p{Cs}/u.test(text), "must be well-formed Unicode");

/** Percent-encodes everything that a segment may not hold, including `/` and `=` of tokens. */
export function toSegment(text: string | number): string {
  return encodeURIComponent(text);
}
