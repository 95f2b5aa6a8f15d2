import { z } from "zod";

/** Returns the schema of a list in a response; null and absent read as empty. */
export function listOf<Item extends z.ZodType>(item: Item) {
  return z
    .array(item)
    .nullish()
    .transform((value) => value ?? []);
}
