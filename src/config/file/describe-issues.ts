import { z } from "zod";
import { wordBound } from "#lib/format.ts";
import { isObject } from "#lib/json.ts";
import { closestName } from "#lib/text.ts";

type Path = readonly PropertyKey[];

/** Describes every mistake as `path: value: rule`. A value that may be a secret in the wrong place is not shown. */
export function describeIssues(
  schema: z.ZodType,
  input: unknown,
  issues: readonly z.core.$ZodIssue[],
): string[] {
  return issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      const at = toPath(issue.path);
      const place = listPlaces(schema, input).find(({ path }) => toPath(path) === at);
      const known = place?.schema instanceof z.ZodObject ? Object.keys(place.schema.shape) : [];
      return issue.keys.map(
        (key) => `${toPath([...issue.path, key])}: is not a setting${suggest(key, known)}`,
      );
    }
    return [`${toPath(issue.path)}: ${showAt(input, issue)}${toRule(issue)}`];
  });
}

export function toPath(path: Path): string {
  const text = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return text === "" ? "the file" : text.replace(/^\./, "");
}

function suggest(key: string, known: readonly string[]): string {
  const references = [`${key}_file`, `${key}_env`].filter((name) => known.includes(name));
  if (references.length > 0) return `: a secret is given as ${references.join(" or ")}`;
  const meant = closestName(key, known) ?? closestShort(key, known);
  return meant === null ? `: known here: ${known.join(", ")}` : `: did you mean ${meant}?`;
}

/** Finds a setting with the same first three letters, because `closestName` does not accept short words. */
function closestShort(key: string, known: readonly string[]): string | null {
  return known.find((name) => name.length > 2 && key.toLowerCase().startsWith(name.slice(0, 3))) ?? null;
}

/** Keys of references. A person may have typed the secret itself there. */
const REFERENCE = /_(file|env)$/;

function showAt(input: unknown, { path }: z.core.$ZodIssue): string {
  const value = valueAt(input, path);
  if (value === undefined) return "not set: ";
  if (path.some((part) => typeof part === "string" && REFERENCE.test(part))) return "[not shown]: ";
  // An address may contain a user name and a password.
  if (typeof value === "string" && /\/.*@/.test(value)) return "[not shown]: ";
  // An object in the wrong place may contain anything, also a secret.
  if (typeof value === "object" && value !== null) return "";
  return `${JSON.stringify(value)?.slice(0, 80)}: `;
}

function toRule(issue: z.core.$ZodIssue): string {
  if (issue.message.startsWith("must ")) return issue.message;
  if (issue.code === "invalid_value") return `must be one of ${issue.values.map(String).join(", ")}`;
  // Only entries with a kind have several shapes.
  if (issue.code === "invalid_union" && "options" in issue)
    return `must be one of ${(issue.options as readonly unknown[]).join(", ")}`;
  if (issue.code === "invalid_type") return `must be ${KINDS[issue.expected] ?? issue.expected}`;
  if (issue.code === "too_small" && issue.origin === "array") return "must not be empty";
  if (issue.code === "invalid_key") return issue.issues[0]?.message ?? issue.message;
  return wordBound(issue) ?? `must be valid: ${issue.message}`;
}

const KINDS: Readonly<Record<string, string>> = {
  object: "a list of names and values",
  record: "a list of names and values",
  array: "a list",
  string: "text (in quotes if it looks like a number)",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
};

function valueAt(input: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, part) =>
      typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[part] : undefined,
    input,
  );
}

/** A place of the file that the schema knows. The schema is without its wrappers, such as `optional`. */
export interface Place {
  readonly path: Path;
  readonly schema: z.ZodType;
  readonly value: unknown;
}

/** Returns the places of a file, which may have mistakes. A channel and a destination have the settings of their kind. */
export function listPlaces(wrapped: z.ZodType, value: unknown, path: Path = []): Place[] {
  const schema = unwrap(wrapped);
  if (schema instanceof z.ZodDiscriminatedUnion) {
    const options = schema.options as readonly z.ZodObject[];
    const kind = isObject(value) ? value["kind"] : undefined;
    const chosen = options.find(({ shape }) => (shape["kind"] as z.ZodLiteral).value === kind);
    return chosen === undefined ? [] : listPlaces(chosen, value, path);
  }
  const schemaOf = (key: string) =>
    schema instanceof z.ZodObject
      ? schema.shape[key]
      : schema instanceof z.ZodRecord
        ? schema.valueType
        : undefined;
  const below =
    schema instanceof z.ZodArray && Array.isArray(value)
      ? value.map((one, index) => ({ part: index, next: schema.element, one }))
      : Object.entries(isObject(value) ? value : {}).map(([key, one]) => ({
          part: key,
          next: schemaOf(key),
          one,
        }));
  return [
    { path, schema, value },
    ...below.flatMap(({ part, next, one }) =>
      next === undefined ? [] : listPlaces(next as z.ZodType, one, [...path, part]),
    ),
  ];
}

function unwrap(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodOptional ? unwrap(schema.unwrap() as z.ZodType) : schema;
}
