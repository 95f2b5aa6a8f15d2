import { z } from "zod";

/** Text of at least one and at most `most` code points, without half of a surrogate pair. */
export function text(most: number) {
  return z
    .string()
    .min(1)
    .refine((value) => Array.from(value).length <= most, `more than ${most} code points`)
    .refine((value) => value.isWellFormed(), "half of a surrogate pair");
}

/** Every string of a value, wherever it is, keys included. */
export function stringsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...stringsOf(inner)]);
}
