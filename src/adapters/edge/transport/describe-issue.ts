import type { z } from "zod";
import { shortenText } from "#lib/escape-text.ts";

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
  const rule = issue.message.replace(/^Invalid (?:input|option|string): /, "");
  return `${field === "" ? "body" : field} ${show(valueAt(root, issue.path))}: ${rule}`;
}
