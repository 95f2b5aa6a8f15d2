/** One call of the platform: its operation, its path, what is checked before it is sent, and the gate that lets it pass. */
import { z } from "zod";
import { wordBound } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { EdgeError } from "../edge-error.ts";

/** The eleven operations; the names appear in errors, metrics and budgets. */
export type EdgeOperation =
  | "list-api-keys"
  | "set-hostname-key-type"
  | "check-dns-zone"
  | "add-container"
  | "update-application"
  | "delete-volume-instances"
  | "search-event-logs"
  | "list-event-logs"
  | "export-event-logs"
  | "get-recommendation"
  | "get-rule-metrics";

/** One operation as the transport sends it. */
export interface EdgeCall {
  readonly operation: EdgeOperation;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path below the base address, already percent-encoded. */
  readonly path: string;
  /** Sent as JSON. The operation's contract has checked it before. */
  readonly body?: unknown;
  /** A POST that changes nothing may be retried like a GET. */
  readonly isReadOnly?: boolean;
  /** `nothing`: the answer's body is ignored unless it reports a failure. */
  readonly expects: "json" | "nothing";
  /** Whether an answer without a body is a success as well; it is read as an object without members. */
  readonly mayBeEmpty?: boolean;
  /** The statuses of a success; every 2xx when unset. The platform sends many failures with 202. */
  readonly successes?: readonly number[];
  /** The shield zone that the operation is about; unset if it is about none. */
  readonly zoneId?: number;
  /** `normal` when unset. */
  readonly priority?: RequestPriority;
  /** The list of the answer whose entries are not parsed but returned as bytes. */
  readonly list?: string;
}

/** The successes with a body, for operations of which the platform's document shows no status. */
export const WITH_BODY = [200, 201, 203, 206];

/** Returns whether a second copy of the call is harmless when the outcome of the first is unknown. */
export function isRepeatable(call: EdgeCall): boolean {
  return call.method !== "POST" || call.isReadOnly === true;
}

/**
 * Order of requests while the budget is scarce. `low` is for work that a person started and that has no deadline,
 * such as a long backfill: it leaves a reserve to the calls that have to keep up with the platform's 72 hours.
 */
export type RequestPriority = "normal" | "low";

/** Admits requests. The transport calls it before every attempt. */
export interface RequestGate {
  /**
   * Resolves when one request may be sent, and rejects with the signal's reason once that aborts. Rejects with
   * ZonePausedError if the platform has refused the zone and the wait would be long. `zoneId` is null for a request of no
   * zone.
   */
  enter(priority: RequestPriority, signal: AbortSignal, zoneId: number | null): Promise<void>;
  /** Reports that the platform answered 429. Null when the answer named no time. Returns at once. */
  limited(retryAfterMs: number | null, zoneId: number | null): void;
  /** Reports that the platform answered a request for the zone. Returns at once. */
  answered(zoneId: number): void;
}

/** Thrown instead of a request, because the platform refused the zone shortly before. */
export class ZonePausedError extends Error {
  override readonly name = "ZonePausedError";
  readonly waitMs: number;

  constructor(zoneId: number, waitMs: number) {
    const seconds = Math.ceil(waitMs / 1_000);
    super(`the platform refused zone ${zoneId} (429); the next request for it may be sent in ${seconds} s`);
    this.waitMs = waitMs;
  }
}

/** Admits every request at once; for commands that a person runs one call at a time. */
export const openGate: RequestGate = { enter: async () => {}, limited: () => {}, answered: () => {} };

/**
 * Text that may become one segment of a path. Dots alone would lead to another operation, and half a surrogate pair
 * cannot be encoded.
 */
export const PathText = pathText(4_096);

/** The platform does not document how long a continuation token may be. Few servers accept a longer address. */
export const MAX_TOKEN_BYTES = 65_536;

export const TokenText = pathText(MAX_TOKEN_BYTES);

function pathText(maxBytes: number) {
  return z
    .string()
    .min(1)
    .refine((text) => Buffer.byteLength(text) <= maxBytes, `must have at most ${maxBytes} bytes`)
    .refine((text) => text !== "." && text !== "..", "must not be a dot segment")
    .refine((text) => !/\p{Cs}/u.test(text), "must be well-formed Unicode");
}

/** Percent-encodes everything that a segment may not hold, including `/` and `=` of tokens. */
export function toSegment(text: string | number): string {
  return encodeURIComponent(text);
}

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

const MAX_SHOWN_CHARS = 60;

function show(input: unknown): string {
  if (input === undefined) return "is missing";
  const text = JSON.stringify(input) ?? typeof input;
  return shortenText(text, MAX_SHOWN_CHARS);
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
    root,
  );
}

/** Returns one broken rule as `field value: rule`; `root` is the whole value that was checked. */
export function describeIssue(issue: z.core.$ZodIssue, root: unknown): string {
  const path = issue.path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("");
  const field = path.replace(/^\./, "");
  if (issue.code === "unrecognized_keys") {
    return `${field === "" ? "" : `${field}: `}${issue.keys.join(", ")}: not a member of this body`;
  }
  const rule = wordBound(issue) ?? issue.message.replace(/^Invalid (?:input|option|string): /, "");
  return `${field === "" ? "body" : field} ${show(valueAt(root, issue.path))}: ${rule}`;
}

/** Members whose inner shape the platform's API does not show (spec 2.14). */
const OPAQUE: ReadonlySet<PropertyKey> = new Set(["protocols", "nodeSelectors", "response"]);

/**
 * Returns whether an issue breaks what the platform's API shows: the type of a member. Which members are required, known,
 * nullable or bounded is not shown, so the platform decides about those.
 */
function breaksType({ code, input, path }: z.core.$ZodIssue): boolean {
  const isInside = path.slice(0, -1).some((part) => OPAQUE.has(part));
  return code === "invalid_type" && input !== undefined && input !== null && !isInside;
}

/** The issues of a body: those that stop it, and those that are only worth a note. */
export function sortIssues(schema: z.ZodType, body: unknown) {
  const issues = schema.safeParse(body, { reportInput: true }).error?.issues ?? [];
  return { wrong: issues.filter(breaksType), unshown: issues.filter((issue) => !breaksType(issue)) };
}

/** Returns the schema of a body that is sent as it was written, as long as its members have the types that are shown. */
export function asWritten<Schema extends z.ZodType>(schema: Schema) {
  return z.custom<z.output<Schema>>().superRefine((body, context) => {
    for (const { path, message } of sortIssues(schema, body).wrong)
      context.addIssue({ code: "custom", path: [...path], message });
  });
}
