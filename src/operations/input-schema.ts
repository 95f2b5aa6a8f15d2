/** The input of an operation: its schema, and the place of each member in a request. */
import { z } from "zod";
import { isObject } from "#lib/json.ts";
import type { OperationAddress } from "#model/operation-address.ts";
import type { Operation } from "./operation.ts";

/** JSON Schema of an input or of one of its members, with what `GlobalMeta` adds. */
export interface Member {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  /** A member that may be null. */
  readonly anyOf?: readonly Member[];
  readonly items?: Member;
  readonly properties?: Readonly<Record<string, Member>>;
  readonly required?: readonly string[];
  readonly flag?: string | null;
  readonly flagDefault?: string;
  readonly operand?: boolean;
  readonly place?: string;
  readonly unit?: "minutes" | "ms";
  readonly time?: true;
  readonly isSwitch?: true;
  readonly lines?: true;
  /** The schema reads texts, whatever the type says. */
  readonly isText?: true;
}

/** Members of a JSON Schema that only our faces know. */
export const OWN_KEYWORDS: ReadonlySet<string> = new Set(
  "flag flagDefault operand place unit time isSwitch lines isText masked".split(" "),
);

/** Returns the JSON Schema of what a client sends. */
export function describeInput({ input }: Pick<Operation, "input">): Member {
  return z.toJSONSchema(input, { io: "input", unrepresentable: "any", override: useWire }) as Member;
}

/** Puts what a client sends in the place of what the schema reads it with: a text, unless the schema takes any value. */
function useWire({
  zodSchema,
  jsonSchema,
}: {
  readonly zodSchema: z.core.$ZodType;
  readonly jsonSchema: z.core.JSONSchema.BaseSchema;
}): void {
  const { wire, ...rest } = jsonSchema as Record<string, unknown>;
  if (!isObject(wire)) return;
  const { description, flag, flagDefault, operand, place, unit, time } = rest;
  for (const name of Object.keys(jsonSchema)) delete jsonSchema[name];
  const said = description ?? wire["description"];
  Object.assign(jsonSchema, { ...wire, description: said, flag, flagDefault, operand, place, unit, time });
  if (!(zodSchema instanceof z.ZodCustom)) Object.assign(jsonSchema, { isText: true });
}

/** Members of an input and their schemas. */
export type Shape = Record<string, z.ZodType>;

/** Returns where the members of an operation's input are: in the path, in the query, or in the body. */
export function placeMembers({ http: [method, path], input, query: inQuery = [] }: Operation): {
  readonly params: Shape;
  readonly query: Shape;
  readonly body: Shape;
} {
  const inPath = new Set(path.match(/(?<=:)\w+/g));
  const isBodiless = method === "GET" || method === "DELETE";
  const places = { params: {} as Shape, query: {} as Shape, body: {} as Shape };
  for (const [name, schema] of Object.entries(input.shape as Shape)) {
    const place = inPath.has(name) ? "params" : isBodiless || inQuery.includes(name) ? "query" : "body";
    places[place][name] = schema;
  }
  return places;
}

/** Returns where a client sends the operation. */
export function addressOf(operation: Operation): OperationAddress {
  const [method, path] = operation.http;
  return { method, path, query: Object.keys(placeMembers(operation).query) };
}
