import { z } from "zod";

/**
 * A string the platform may also send as a number, as null or not at all; read as text, `""` when there is none.
 * Label and dimension values are strings by contract, and one odd value must not cost the event that carries it.
 */
export const Text = z
  .union([z.string(), z.number(), z.boolean()])
  .nullish()
  .transform((value) => (value === null || value === undefined ? "" : String(value)));

/** The same where "nothing" differs from "empty": null when the platform sent null or nothing. */
export const OptionalText = z
  .string()
  .nullish()
  .transform((value) => value ?? null);
