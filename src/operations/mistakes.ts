import type { z } from "zod";
import { isObject } from "#lib/json.ts";
import { shortenText } from "#lib/text.ts";
import type { Mistake } from "./refusal.ts";

const MAX_SHOWN_CHARS = 100;
const MAX_MISTAKES = 50;
/** Fields that may contain a key or a password by mistake. */
const SECRET_FIELD = /key|secret|token|password|credential|authori[sz]ation/i;

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
  if (issue.code !== "invalid_type")
    return value === undefined ? `is missing: ${issue.message}` : issue.message;
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
