import type { z } from "zod";
import { EdgeError } from "../edge-error.ts";
import type { EdgeOperation } from "../edge-operation.ts";
import { describeIssue } from "./describe-issue.ts";

/**
 * Returns the request if it fulfils its contract. Throws an EdgeError EDGE_INVALID_REQUEST with every mistake
 * otherwise, so that nothing is sent.
 */
export function checkRequest<Schema extends z.ZodType>(
  operation: EdgeOperation,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map((issue) => describeIssue(issue, value));
  throw new EdgeError({
    operation,
    code: "EDGE_INVALID_REQUEST",
    disposition: "give-up",
    text: `not sent: ${mistakes.join("; ")}`,
    field: parsed.error.issues[0]?.path.join(".") ?? null,
    mistakes,
  });
}
