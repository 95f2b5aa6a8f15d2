import { isObject } from "../../lib/is-object.ts";
import { escapeMarkup } from "../feed/escape-markup.ts";
import type { JsonSchema } from "./openapi-schema.ts";

const COMPONENTS = "#/components/schemas/";
/** Members of members of members; what lies deeper is in the document. */
const MAX_DEPTH = 4;
const MAX_WORDS = 12;

/** The name that a reference means; null for anything else. */
function referredName(schema: JsonSchema): string | null {
  const ref = schema["$ref"];
  return typeof ref === "string" && ref.startsWith(COMPONENTS) ? ref.slice(COMPONENTS.length) : null;
}

/** A type in a few words, as HTML: `array of <a>Alert</a>`, `string or null`. */
export function describeType(schema: JsonSchema): string {
  const name = referredName(schema);
  if (name !== null) return `<a href="#schema-${escapeMarkup(name)}">${escapeMarkup(name)}</a>`;
  const options = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(options)) return [...new Set(options.filter(isObject).map(describeType))].join(" or ");
  if (Array.isArray(schema["enum"])) {
    const words = schema["enum"]
      .slice(0, MAX_WORDS)
      .map((word) => `<code>${escapeMarkup(String(word))}</code>`);
    return words.join(" · ");
  }
  if (schema["const"] !== undefined) return `<code>${escapeMarkup(JSON.stringify(schema["const"]))}</code>`;
  if (isObject(schema["items"])) {
    const item = describeType(schema["items"]);
    return Array.isArray(schema["items"]["enum"]) ? `one or more of ${item}` : `array of ${item}`;
  }
  const type = schema["type"];
  const words = Array.isArray(type) ? type.map(String).join(" or ") : typeof type === "string" ? type : "any";
  return `${escapeMarkup(words)}${describeRange(schema)}`;
}

function describeRange(schema: JsonSchema): string {
  const [least, most] = [schema["minimum"], schema["maximum"]];
  const isBounded = (bound: unknown) =>
    typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  if (isBounded(least) && isBounded(most)) return ` ${String(least)} to ${String(most)}`;
  return "";
}

export interface Member {
  readonly name: string;
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
}

/** The members of an object and, with a dot, of the objects in it; empty for what has none. */
export function listMembers(schema: JsonSchema, prefix = "", depth = 1): Member[] {
  const { properties, required = [], items, anyOf } = schema;
  if (isObject(items) && isObject(items["properties"])) return listMembers(items, `${prefix}[].`, depth);
  const object = Array.isArray(anyOf)
    ? anyOf.find((one) => isObject(one) && isObject(one["properties"]))
    : undefined;
  if (isObject(object)) return listMembers(object, prefix, depth);
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, member]) => {
    if (!isObject(member)) return [];
    const isRequired = Array.isArray(required) && required.includes(name);
    const own = { name: `${prefix}${name}`, isRequired, schema: member };
    const inner = depth < MAX_DEPTH ? listMembers(member, `${prefix}${name}.`, depth + 1) : [];
    return [own, ...inner.map((one) => ({ ...one, name: one.name.replace(".[]", "[]") }))];
  });
}
