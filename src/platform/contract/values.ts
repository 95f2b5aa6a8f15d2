/** Values and lists as the platform writes them: texts, whole numbers, identifiers and times. */
import { z } from "zod";
import { isObject } from "#lib/json.ts";

/**
 * A string that the platform may also send as a number, as null or not at all; read as text, `""` when there is none.
 * Label and dimension values are strings by contract, and one odd value must not invalidate its event.
 */
export const Text = z
  .union([z.string(), z.number(), z.boolean()])
  .nullish()
  .transform((value) => (value === null || value === undefined ? "" : String(value)));

/** The same if "nothing" differs from "empty": null when the platform sent null or nothing. */
export const OptionalText = z
  .string()
  .nullish()
  .transform((value) => value ?? null);

/** Returns the schema of a list in a response; null and absent read as empty. */
export function listOf<Item extends z.ZodType>(item: Item) {
  return z
    .array(item)
    .nullish()
    .transform((value) => value ?? []);
}

/**
 * Returns a preprocessing step that refuses everything but an object with a list in at least one of `members`. A
 * failure of the platform contains null lists, and reading null as "no events" would lose data silently.
 */
export function requireList(members: readonly string[]) {
  return (value: unknown, context: z.RefinementCtx): unknown => {
    if (isObject(value) && members.some((member) => Array.isArray(value[member]))) return value;
    context.addIssue({ code: "custom", message: `must be an object with a list in ${members.join(" or ")}` });
    return z.NEVER;
  };
}

const MAX_INT32 = 2_147_483_647;

/** A .NET int32. The platform refuses a body with any value outside its range. */
export const Int32 = z
  .int()
  .min(-MAX_INT32 - 1)
  .max(MAX_INT32);

/** An int32 identifier: shield zones and pull zones. */
export const Int32Id = z.int().min(1).max(MAX_INT32);

/** A count in a response; null and absent read as 0. */
export const Count = z
  .int()
  .nullish()
  .transform((value) => value ?? 0);

/** A .NET int64 in a response; a text of its digits if a double cannot hold it. */
export const Int64 = z.union([z.int(), z.string().regex(/^-?\d+$/)]);

/**
 * The platform's identifier of an event, a lower-case UUID in all known cases. An event without an identifier is
 * refused, because it cannot be distinguished from its copies. A number is read as its digits.
 */
export const LogId = z.union([z.string().min(1), z.int().transform(String)]);

/** The last millisecond a JavaScript Date can hold. */
const LAST_DATE_MS = 8_640_000_000_000_000;

/** Unix time in milliseconds, UTC; only values that a Date can represent. */
export const EpochMs = z.int().min(0).max(LAST_DATE_MS);

/** A smaller number is a time in seconds: as milliseconds it would be before March 1973. */
const SECONDS_BELOW = 100_000_000_000;

/**
 * Returns the time of an entry in whole epoch ms, or null for a value that is none. The platform sends milliseconds. A
 * time in seconds is read as well, and a fraction of a millisecond is cut off.
 */
export function readEventTime(value: unknown): number | null {
  if (typeof value !== "number" || !(value >= 0 && value <= LAST_DATE_MS)) return null;
  // To the microsecond first, because a double holds 0.122 s as a little more or less.
  return Math.floor(value < SECONDS_BELOW ? Math.round(value * 1_000_000) / 1_000 : value);
}

/** The time of an entry, for `readEventTime`. */
export const EventTime = z
  .number()
  .min(0)
  .max(LAST_DATE_MS)
  .transform((time) => readEventTime(time) ?? 0);
