import { z } from "zod";
import { isObject } from "#lib/is-object.ts";
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
  readonly operand?: true;
  readonly unit?: "minutes" | "ms";
  readonly time?: true;
  readonly isSwitch?: true;
  /** The schema reads texts, whatever the type says. */
  readonly isText?: true;
}

/** Returns the JSON Schema of what a client sends. */
export function describeInput({ input }: Operation): Member {
  return z.toJSONSchema(input, { io: "input", unrepresentable: "any", override: useWire }) as Member;
}

/** Puts what a client sends in the place of what the schema reads it with. */
function useWire({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  const { wire, ...rest } = jsonSchema as Record<string, unknown>;
  if (!isObject(wire)) return;
  const { description, flag, flagDefault, unit, time } = rest;
  for (const name of Object.keys(jsonSchema)) delete jsonSchema[name];
  Object.assign(jsonSchema, { ...wire, isText: true, description, flag, flagDefault, unit, time });
}
