import { z } from "zod";
import { isObject } from "../../lib/is-object.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

const DEFS = "#/$defs/";
const COMPONENTS = "#/components/schemas/";

/**
 * The JSON Schema (2020-12, which OpenAPI 3.1 uses as it is) of what a client sends or gets. Schemas that carry an id are
 * put into `components` and referred to. What a schema's meta calls `wire` takes its place: what is sent in a query is text
 * for the reader and a number for everybody else.
 */
export function toJsonSchema(
  schema: unknown,
  io: "input" | "output",
  components: Map<string, JsonSchema>,
): JsonSchema {
  if (!(schema instanceof z.ZodType)) return isObject(schema) ? schema : {};
  const {
    $schema: _$schema,
    $defs = {},
    ...root
  } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Record<string, unknown>;
  for (const [name, part] of Object.entries($defs as Record<string, unknown>)) keep(name, part);
  return typeof root["id"] === "string" ? keep(root["id"], root) : (pointToComponents(root) as JsonSchema);

  function keep(name: string, part: unknown): JsonSchema {
    const { id: _id, ...named } = pointToComponents(part) as Record<string, unknown>;
    components.set(name, named);
    return { $ref: `${COMPONENTS}${name}` };
  }
}

function pointToComponents(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(pointToComponents);
  if (!isObject(part)) return part;
  const { wire, ...rest } = part;
  if (isObject(wire))
    return typeof rest["description"] === "string" ? { ...wire, description: rest["description"] } : wire;
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) =>
      name === "$ref" && typeof value === "string" && value.startsWith(DEFS)
        ? [name, `${COMPONENTS}${value.slice(DEFS.length)}`]
        : [name, pointToComponents(value)],
    ),
  );
}
