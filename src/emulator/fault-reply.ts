import type { Fault } from "./faults.ts";
import type { Operation } from "./operations.ts";
import { failureBlock, JSON_TYPE, json, minimalError, problem, type Reply, titleOf } from "./reply.ts";

type Of<Kind extends Fault["kind"]> = Extract<Fault, { kind: Kind }>;

function rateLimited(fault: Of<"rate-limit">, nowMs: number): Reply {
  const reply = json(429, { Message: "Too many requests." });
  if (fault.retryAfter === "none") return reply;
  const date = new Date(nowMs + fault.seconds * 1_000).toUTCString();
  const retryAfter = fault.retryAfter === "date" ? date : String(fault.seconds);
  return { ...reply, headers: { ...reply.headers, "retry-after": retryAfter } };
}

function failedStatus(fault: Of<"status">): Reply {
  const { status } = fault;
  const title = titleOf(status);
  const page = `<!DOCTYPE html><html><head><title>${status} ${title}</title></head><body><h1>${title}</h1></body></html>`;
  const problemText = JSON.stringify({ type: "about:blank", title, status, detail: `${title} (injected)` });
  const bodies: Record<typeof fault.body, readonly [contentType: string | undefined, body: string]> = {
    json: [JSON_TYPE, problemText],
    plain: ["text/plain; charset=utf-8", title],
    html: ["text/html; charset=utf-8", page],
    empty: [undefined, ""],
  };
  const [usual, body] = bodies[fault.body];
  const contentType = fault.contentType ?? usual;
  return { status, headers: contentType === undefined ? {} : { "content-type": contentType }, body };
}

/** The other members beside the filled block, in the operation's own shape, with their defaults. */
const DEFAULTS: Partial<Record<Operation, Readonly<Record<string, unknown>>>> = {
  "search-event-logs": { rows: null, groups: null, total: 0, totalPages: 0, page: 0 },
  "list-event-logs": { logs: null, hasMoreData: false, continuationToken: null, startToken: null },
  "recommend-rule": { shieldZoneId: 0, ruleId: null, success: false, recommendation: null },
};

function enveloped(operation: Operation, status: number, errorKey: string, message: string): Reply {
  const block = failureBlock(status, errorKey, message);
  if (operation === "rule-metrics") return json(status, { data: null, error: block });
  const others = DEFAULTS[operation];
  return json(status, others === undefined ? block : { ...others, errorResponse: block });
}

function unauthorized(operation: Operation): Reply {
  const isMinimal = operation === "recommend-rule" || operation === "rule-metrics";
  return isMinimal ? minimalError(401) : problem(401);
}

/** Returns the answer of the first fault that replaces one; `undefined` when the route answers. */
export function faultReply(faults: readonly Fault[], operation: Operation, nowMs: number): Reply | undefined {
  for (const fault of faults) {
    if (fault.kind === "rate-limit") return rateLimited(fault, nowMs);
    if (fault.kind === "status") return failedStatus(fault);
    if (fault.kind === "envelope") return enveloped(operation, 202, fault.errorKey, fault.message);
    if (fault.kind === "unauthorized") {
      return fault.errorKey === undefined
        ? unauthorized(operation)
        : enveloped(operation, 401, fault.errorKey, "The request was rejected.");
    }
  }
  return undefined;
}
