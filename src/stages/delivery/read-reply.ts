import type { z } from "zod";

/** Returns a receiver's JSON answer in the expected shape; null for anything else and for a lost answer. */
export function readReply<Shape>(body: string | null, schema: z.ZodType<Shape>): Shape | null {
  try {
    return schema.safeParse(JSON.parse(body ?? "null")).data ?? null;
  } catch {
    return null;
  }
}
