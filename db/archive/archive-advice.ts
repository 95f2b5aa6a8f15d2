import { and, desc, eq, ne } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { advice } from "../schema/advice.ts";

export interface StoredAdvice {
  /** The newest recommendation; its text is hostile. */
  readonly answer: { readonly text: string; readonly askedAt: number } | null;
  /** Of the newest ask when that failed; null when it did not, or there is none. */
  readonly errorKey: string | null;
}

/** What is known about a rule; an ask under way does not count. */
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
