import type { Deadline } from "#lib/deadline.ts";
import type { EdgeCall } from "./edge-call.ts";
import { toFailedAttempt } from "./failed-attempt.ts";
import type { CsvReply } from "./receive-csv.ts";
import { type AttemptSettings, toEdgeError } from "./run-attempts.ts";

/** Yields the chunks of a stream under its deadline. Errors become EdgeErrors, and nothing is retried. */
export async function* guardStream(
  call: EdgeCall,
  settings: AttemptSettings,
  deadline: Deadline,
  callerSignal: AbortSignal | undefined,
  reply: CsvReply,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* reply.chunks;
  } catch (thrown) {
    if (deadline.endedBy() === "caller") throw callerSignal?.reason;
    const failed = toFailedAttempt(thrown, deadline.endedBy());
    throw toEdgeError(call, failed, null, settings.hideKey);
  } finally {
    deadline.release();
  }
}
