/** Faults that a test orders, and the answers that show them. */
import { z } from "zod";
import { OPERATIONS, type Operation } from "./emulator-context.ts";
import { failureBlock, JSON_TYPE, json, minimalError, problem, type Reply, titleOf } from "./reply.ts";
import { createRandom, hashText } from "./traffic/random.ts";
import { SHAPES } from "./traffic/render-event.ts";

const target = {
  operation: z.enum(["any", ...OPERATIONS]).default("any"),
  /** Share of the matching requests that are hit; the seed decides which. */
  probability: z.number().min(0).max(1).default(1),
  /** Number of further matching requests to hit. Without it the fault stays until it is removed. */
  next: z.int().min(1).optional(),
};
const listTarget = { ...target, operation: z.literal("list-event-logs").default("list-event-logs") };

/** One kind of failure of the platform. The kinds of the list operation change the page, not the transport. */
export const Fault = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("rate-limit"),
    ...target,
    retryAfter: z.enum(["seconds", "date", "none"]).default("seconds"),
    seconds: z.int().min(0).default(1),
  }),
  z.strictObject({
    kind: z.literal("status"),
    ...target,
    status: z.int().min(400).max(599).default(503),
    body: z.enum(["json", "plain", "html", "empty"]).default("json"),
    contentType: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal("unauthorized"), ...target, errorKey: z.string().optional() }),
  z.strictObject({
    kind: z.literal("envelope"),
    ...target,
    errorKey: z.string().default("invalid_plan_type.event_logs"),
    message: z.string().default("This feature is not part of the plan."),
  }),
  z.strictObject({ kind: z.literal("latency"), ...target, ms: z.int().min(0).max(600_000).default(1_000) }),
  z.strictObject({
    kind: z.literal("truncated-body"),
    ...target,
    keep: z.number().min(0).max(1).default(0.5),
  }),
  z.strictObject({
    kind: z.literal("slow-drip"),
    ...target,
    bytes: z.int().min(1).default(16),
    everyMs: z.int().min(1).default(100),
  }),
  z.strictObject({
    kind: z.literal("cut-socket"),
    ...target,
    at: z.enum(["before", "headers", "middle"]).default("middle"),
  }),
  z.strictObject({ kind: z.literal("duplicate-page"), ...listTarget }),
  z.strictObject({
    kind: z.literal("shortened-page"),
    ...listTarget,
    keep: z.number().min(0).max(1).default(0.5),
    endsEarly: z.boolean().default(false),
  }),
  z.strictObject({
    kind: z.literal("dropped-events"),
    ...listTarget,
    share: z.number().min(0).max(1).default(0.1),
    passes: z.int().min(1).default(1),
  }),
  z.strictObject({
    kind: z.literal("hidden-rows"),
    ...target,
    operation: z.literal("search-event-logs").default("search-event-logs"),
    share: z.number().min(0).max(1).default(0.1),
  }),
  z.strictObject({
    kind: z.literal("token-loop"),
    ...listTarget,
    pages: z.int().min(1).max(1_000).default(1),
  }),
  z.strictObject({ kind: z.literal("token-expiry"), ...listTarget }),
  z.strictObject({
    kind: z.literal("long-token"),
    ...listTarget,
    bytes: z.int().min(1).max(200_000).default(60_000),
  }),
  z.strictObject({
    kind: z.literal("odd-entries"),
    ...target,
    share: z.number().min(0).max(1).default(0.1),
    shape: z.enum(SHAPES).default("unreadable"),
  }),
]);
export type Fault = z.output<typeof Fault>;
export type FaultInput = z.input<typeof Fault>;

export type Faults = ReturnType<typeof createFaults>;

/**
 * Returns the active faults. Whether one hits is a function of the seed, the fault's position and its number of
 * requests.
 */
export function createFaults(seed: string) {
  const random = createRandom();
  let active: { id: number; fault: Fault; asked: number; left: number }[] = [];
  let lastId = 0;

  function hits(entry: (typeof active)[number]): boolean {
    entry.asked++;
    random.reseed(hashText(seed), 0x666c74, entry.id, entry.asked);
    if (entry.left === 0 || random.fraction() >= entry.fault.probability) return false;
    entry.left--;
    return true;
  }

  return {
    add(fault: Fault): number {
      active.push({ id: ++lastId, fault, asked: 0, left: fault.next ?? Number.POSITIVE_INFINITY });
      return lastId;
    },
    clear(): void {
      active = [];
      lastId = 0;
    },
    /** Returns the faults that apply to this request, and counts each as used. */
    strike(operation: Operation): Fault[] {
      const struck = active
        .filter(({ fault }) => fault.operation === "any" || fault.operation === operation)
        .filter(hits);
      active = active.filter((entry) => entry.left > 0);
      return struck.map((entry) => entry.fault);
    },
    list: () =>
      active.map(({ id, fault, left }) => ({ id, ...fault, left: Number.isFinite(left) ? left : null })),
  };
}

/** Reads `kind,key=value,...` of a command line. Returns every mistake. */
export function parseFault(text: string): { fault: Fault } | { mistakes: string[] } {
  const [kind, ...pairs] = text.split(",");
  const entries = pairs.map((pair): [string, unknown] => {
    const [key = "", value = ""] = pair.split(/=(.*)/s);
    if (value === "true" || value === "false") return [key, value === "true"];
    return [key, value !== "" && Number.isFinite(Number(value)) ? Number(value) : value];
  });
  const parsed = Fault.safeParse({ kind, ...Object.fromEntries(entries) });
  if (parsed.success) return { fault: parsed.data };
  return {
    mistakes: parsed.error.issues.map(
      (issue) => `fault "${text}": ${issue.path.join(".") || "kind"}: ${issue.message}`,
    ),
  };
}

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
