import type { z } from "zod";
import { EdgeError } from "../edge-error.ts";
import { type EdgeCall, isRepeatable } from "./edge-call.ts";
import type { EdgeReply } from "./receive-reply.ts";

/**
 * Returns the parsed answer and keeps unknown members. Throws EDGE_MALFORMED when the JSON does not fulfil the
 * operation's contract.
 */
export function readAnswer<Schema extends z.ZodType>(
  schema: Schema,
  call: EdgeCall,
  reply: EdgeReply,
): z.output<Schema> {
  const parsed = schema.safeParse(reply.json);
  if (parsed.success) return parsed.data;
  // Names paths and types only, because values come from the platform, and a key list's values are credentials.
  const said = parsed.error.issues.map((issue) => `${issue.path.join(".") || "body"}: ${issue.message}`);
  throw new EdgeError({
    operation: call.operation,
    code: "EDGE_MALFORMED",
    disposition: isRepeatable(call) ? "retry" : "give-up",
    text: `the answer has another shape: ${said.join("; ")}`,
    status: reply.status,
    requestId: reply.requestId,
  });
}
