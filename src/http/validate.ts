import type { FastifySchemaCompiler } from "fastify";
import type { z } from "zod";
import { shortenText } from "../edge/escape-text.ts";
import { isObject } from "../is-object.ts";
import { type Mistake, Refusal } from "./refusal.ts";

const MAX_SHOWN_CHARS = 100;
const MAX_MISTAKES = 50;
/** Fields in which somebody may have put a key or a password. */
const SECRET_FIELD = /key|secret|token|password|credential|authori[sz]ation/i;

/** Checks a part of the request by its zod schema; all mistakes come in one refusal. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema }) =>
  (data: unknown) => {
    const parsed = schema.safeParse(data);
    if (parsed.success) return { value: parsed.data };
    const mistakes = parsed.error.issues.flatMap((issue) => toMistakes(issue, data)).slice(0, MAX_MISTAKES);
    return { error: new Refusal(400, { slug: "invalid-request", detail: summarise(mistakes), mistakes }) };
  };

/** Of one broken rule; `root` is the whole value that was checked. */
function toMistakes(issue: z.core.$ZodIssue, root: unknown): Mistake[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({
      field: toField([...issue.path, key]),
      rule: "is not a member of this request",
    }));
  const field = toField(issue.path);
  const value = valueAt(root, issue.path);
  const shown = typeof value === "object" || SECRET_FIELD.test(field) ? undefined : JSON.stringify(value);
  return [
    {
      field,
      ...(shown === undefined ? {} : { value: shortenText(shown, MAX_SHOWN_CHARS) }),
      rule: value === undefined ? `is missing: ${issue.message}` : issue.message,
    },
  ];
}

function summarise(mistakes: readonly Mistake[]): string {
  const [first] = mistakes;
  const more = mistakes.length > 1 ? ` (and ${mistakes.length - 1} more)` : "";
  return first === undefined ? "The request is not valid." : `${first.field}: ${first.rule}${more}`;
}

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
