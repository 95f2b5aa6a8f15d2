import { and, desc, eq, ne } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { advice } from "../schema/advice.ts";

export interface StoredAdvice {
  /** The newest recommendation. Its text is hostile. */
  readonly answer: { readonly text: string; readonly askedAt: number } | null;
  /** Error key of the newest ask if that ask failed, else null. */
  readonly errorKey: string | null;
}

/** Returns the stored advice of a rule. An ask in progress does not count. */
export async function readStoredAdvice(
  db: Queryable,
  { zoneId, ruleId }: { readonly zoneId: number; readonly ruleId: string },
  asking: string,
): Promise<StoredAdvice> {
  const isOfRule = and(eq(advice.zoneId, zoneId), eq(advice.ruleId, ruleId));
  const [answer] = await db
    .select({ text: advice.text, askedAt: advice.askedAt })
    .from(advice)
    .where(and(isOfRule, eq(advice.success, true)))
    .orderBy(desc(advice.askedAt))
    .limit(1);
  const [failure] = await db
    .select({ errorKey: advice.errorKey })
    .from(advice)
    .where(and(isOfRule, eq(advice.success, false), ne(advice.errorKey, asking)))
    .orderBy(desc(advice.askedAt))
    .limit(1);
  return {
    answer: answer === undefined ? null : { text: answer.text ?? "", askedAt: answer.askedAt.getTime() },
    errorKey: failure?.errorKey ?? null,
  };
}
