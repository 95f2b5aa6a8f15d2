import { isIP } from "node:net";
import { isObject } from "#lib/json.ts";

/** A field of a mapping, as far as the documented rules of dynamic mapping need it. */
interface Field {
  readonly type?: string;
  readonly enabled?: boolean;
  readonly ignore_malformed?: boolean;
  readonly ignore_above?: number;
  readonly index?: boolean;
  readonly properties?: Readonly<Record<string, Field>>;
}

export interface Template {
  readonly index_patterns: readonly string[];
  readonly template: {
    readonly settings?: Readonly<Record<string, unknown>>;
    readonly mappings?: {
      readonly date_detection?: boolean;
      readonly dynamic_templates?: readonly Readonly<
        Record<string, { readonly match_mapping_type: string; readonly mapping: Field }>
      >[];
      readonly properties?: Readonly<Record<string, Field>>;
    };
  };
}

/** The formats of date detection: `strict_date_optional_time` and `yyyy/MM/dd`. */
const DATE =
  /^\d{4}(?:-\d\d(?:-\d\d(?:T\d\d(?::\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?|\/\d\d\/\d\d)$/;

/** The mapping of one index. Every new field is mapped by the first document that has it (Elasticsearch, "Dynamic mapping"). */
export function createMapping(template: Template | undefined) {
  const fields = new Map<string, Field>();
  const { mappings = {}, settings = {} } = template?.template ?? {};
  const ignoresMalformed = settings["index.mapping.ignore_malformed"] === true;
  const add = (prefix: string, properties: Readonly<Record<string, Field>>) => {
    for (const [name, field] of Object.entries(properties)) {
      fields.set(`${prefix}${name}`, field.properties === undefined ? field : { type: "object", ...field });
      if (field.properties !== undefined) add(`${prefix}${name}.`, field.properties);
    }
  };
  add("", mappings.properties ?? {});

  function map(value: unknown): Field {
    if (isObject(value)) return { type: "object" };
    if (typeof value === "number") return { type: Number.isInteger(value) ? "long" : "float" };
    if (typeof value === "boolean") return { type: "boolean" };
    if (mappings.date_detection !== false && DATE.test(String(value))) return { type: "date" };
    const templates = (mappings.dynamic_templates ?? []).flatMap((one) => Object.values(one));
    return templates.find((one) => one.match_mapping_type === "string")?.mapping ?? { type: "text" };
  }

  /** Returns why a document is refused, or null. */
  return function findMistake(document: Readonly<Record<string, unknown>>, prefix = ""): string | null {
    for (const [key, given] of Object.entries(document)) {
      const names = `${prefix}${key}`;
      for (const value of [given].flat()) {
        if (value === null) continue;
        const field = fields.get(names) ?? map(value);
        fields.set(names, field);
        if (field.enabled === false) continue;
        const mistake =
          field.type === "object"
            ? isObject(value)
              ? findMistake(value, `${names}.`)
              : `object mapping for [${names}] tried to parse field [${names}] as object, but found a concrete value`
            : findFault(field, value, ignoresMalformed) &&
              `failed to parse field [${names}] of type [${field.type}]`;
        if (typeof mistake === "string") return mistake;
      }
    }
    return null;
  };
}

/** Lucene takes no longer term. */
const MAX_TERM_BYTES = 32_766;

function findFault(
  { type, ignore_malformed, ignore_above, index }: Field,
  value: unknown,
  ignoresMalformed: boolean,
): boolean {
  if (isObject(value)) return true;
  const text = String(value);
  if (type === "text") return false;
  if (type === "keyword")
    return (
      index !== false && text.length <= (ignore_above ?? Infinity) && Buffer.byteLength(text) > MAX_TERM_BYTES
    );
  if (ignore_malformed === true || ignoresMalformed) return false;
  if (type === "date") return !DATE.test(text);
  if (type === "ip") return isIP(text) === 0;
  if (type === "boolean") return text !== "true" && text !== "false";
  return Number.isNaN(Number(text));
}
