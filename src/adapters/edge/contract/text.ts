import { z } from "zod";

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
