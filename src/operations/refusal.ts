/** Refusals: what was wrong, and what to do. */

import type { z } from "zod";
import { ServiceError } from "#lib/errors.ts";
import { wordBound } from "#lib/format.ts";
import { isObject } from "#lib/json.ts";
import { shortenText } from "#lib/text.ts";

/** One broken rule of a request. `value` is left out where it may be a secret. */
export interface Mistake {
  readonly field: string;
  readonly value?: string;
  /** Follows the name of the field: "must be a list", "is missing". */
  readonly rule: string;
}

interface RefusalOptions {
  /** Shown to the client: no SQL, no addresses, no text of another error. */
  readonly detail?: string;
  /** Ends the problem's type if the status alone is not enough: `query-too-slow`. */
  readonly slug?: string;
  readonly mistakes?: readonly Mistake[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Only for the log. */
  readonly cause?: unknown;
}

/** An error that a route answers on purpose. */
export class Refusal extends ServiceError {
  override readonly name = "Refusal";
  readonly code = "REFUSED";
  readonly disposition = "give-up";
  readonly statusCode: number;
  readonly detail: string | undefined;
  readonly slug: string | undefined;
  readonly mistakes: readonly Mistake[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(statusCode: number, options: RefusalOptions = {}) {
    super(options.detail ?? `refused with ${statusCode}`, { cause: options.cause });
    this.statusCode = statusCode;
    this.detail = options.detail;
    this.slug = options.slug;
    this.mistakes = options.mistakes ?? [];
    this.headers = options.headers ?? {};
  }
}

const MAX_SHOWN_CHARS = 100;
const MAX_MISTAKES = 50;
/** Fields that may contain a key or a password by mistake. */
const SECRET_FIELD = /key(?!type)|secret|token|password|credential|authori[sz]ation/i;

/** Returns every mistake of an input that its schema refused. `isText`: the sender wrote texts, so a list is a repetition. */
export function findMistakes(
  error: z.core.$ZodError,
  input: unknown,
  { isText = false }: { readonly isText?: boolean } = {},
): Mistake[] {
  return error.issues.flatMap((issue) => toMistakes(issue, input, isText)).slice(0, MAX_MISTAKES);
}

/** Returns the mistakes of one broken rule; `root` is the whole value that was checked. */
function toMistakes(issue: z.core.$ZodIssue, root: unknown, isText: boolean): Mistake[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({
      field: toField([...issue.path, key]),
      rule: "is not a known member of this request",
    }));
  const field = toField(issue.path);
  const value = valueAt(root, issue.path);
  const shown = typeof value === "object" || SECRET_FIELD.test(field) ? undefined : JSON.stringify(value);
  return [
    {
      field,
      ...(shown === undefined ? {} : { value: shortenText(shown, MAX_SHOWN_CHARS) }),
      rule: wordRule(issue, value, isText),
    },
  ];
}

/** Words a mistake for the sender of a request, not for its schema. Every value in a query is text. */
function wordRule(issue: z.core.$ZodIssue, value: unknown, isText: boolean): string {
  if (issue.code === "invalid_value" && value !== undefined && issue.message.startsWith("Invalid "))
    return `must be ${issue.values.length === 1 ? "" : "one of "}${issue.values.map(String).join(", ")}`;
  if (issue.code !== "invalid_type") {
    const rule = wordBound(issue) ?? issue.message.replace("Invalid string: ", "");
    return value === undefined ? `is missing: ${rule}` : rule;
  }
  if (value === undefined) return "is missing";
  if (Array.isArray(value) && isText) return "is given more than once";
  // The schema has words of its own.
  if (!issue.message.startsWith("Invalid input")) return issue.message;
  return `must be ${WORDS[issue.expected] ?? issue.expected}`;
}

const WORDS: Readonly<Record<string, string>> = {
  object: "a JSON object",
  array: "a list",
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
};

function toField(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return text === "" ? "body" : shortenText(text.replace(/^\./, ""), MAX_SHOWN_CHARS);
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, part) => {
    if (Array.isArray(value)) return value[Number(part)];
    return isObject(value) && Object.hasOwn(value, part) ? value[String(part)] : undefined;
  }, root);
}
