import type { z } from "zod";

/** A receiver's JSON answer in the expected shape; null for anything else, also for an answer lost on its way. */
export function readReply<Shape>(body: string | null, schema: z.ZodType<Shape>): Shape | null {
  try {
    return schema.safeParse(JSON.parse(body ?? "null")).data ?? null;
  } catch {
    return null;
  }
}
