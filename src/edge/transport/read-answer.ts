import type { z } from "zod";
import { EdgeError } from "../edge-error.ts";
import { type EdgeCall, isRepeatable } from "./edge-call.ts";
import type { EdgeReply } from "./receive-reply.ts";

/** The tolerant reader: unknown members stay. Throws EDGE_MALFORMED when the JSON is not what the operation answers. */
export function readAnswer<Schema extends z.ZodType>(
  schema: Schema,
  call: EdgeCall,
  reply: EdgeReply,
): z.output<Schema> {
  const parsed = schema.safeParse(reply.json);
  if (parsed.success) return parsed.data;
  // Paths and types only: the values are the platform's, and a key list's values are credentials.
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
