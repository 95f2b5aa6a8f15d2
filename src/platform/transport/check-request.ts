/** Checks a request before anything is sent. */
import { z } from "zod";
import { wordBound } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { EdgeError } from "../edge-error.ts";
import type { EdgeOperation } from "./call.ts";

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
