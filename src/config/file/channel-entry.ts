import { z } from "zod";
import { CHANNELS } from "#stages/delivery/channels/registry.ts";

/** A field of a channel: its name in code and its key in the file. */
export interface ChannelField {
  /** `routingKey`. */
  readonly name: string;
  /** `routing_key`; a secret adds `_file` or `_env`. */
  readonly key: string;
  readonly secret: "no" | "one" | "many";
  readonly isRequired: boolean;
  /** The inner fields of an object, or null. */
  readonly fields: readonly ChannelField[] | null;
  readonly schema: z.ZodType;
}

/** The settings of each kind of channel. The channel's name is the key of its entry in the file. */
export const channelFields: ReadonlyMap<string, readonly ChannelField[]> = new Map(
  CHANNELS.map(({ kind, settings }) => [
    kind,
    Object.entries<z.ZodType>(settings).map(([name, schema]) => toField(name, schema)),
  ]),
);

function toField(name: string, schema: z.ZodType): ChannelField {
  const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const isRequired = !schema.safeParse(undefined).success;
  const bare = unwrap(schema);
  const item = bare instanceof z.ZodArray ? unwrap(bare.element as z.ZodType) : null;
  const secret = holdsSecret(bare) ? "one" : item !== null && holdsSecret(item) ? "many" : "no";
  const fields =
    bare instanceof z.ZodObject
      ? Object.entries(bare.shape as Record<string, z.ZodType>).map(([inner, one]) => toField(inner, one))
      : null;
  return { name, key, secret, isRequired, fields, schema };
}

function unwrap(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable
    ? unwrap(schema.unwrap() as z.ZodType)
    : schema;
}

/** Returns whether the schema is a secret. Only secrets have a transformation of their text. */
function holdsSecret(schema: z.ZodType): boolean {
  return schema instanceof z.ZodPipe;
}

export const fileReference = z
  .string()
  .min(1)
  .describe("a file that holds nothing but the secret; relative to this one");
export const variableReference = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable")
  .describe("the environment variable that holds the secret");

function toEntrySchema(kind: string, fields: readonly ChannelField[]) {
  const shape = { kind: z.literal(kind), ...toShape(fields) };
  return z.strictObject(shape);
}

function toShape(fields: readonly ChannelField[]): Record<string, z.ZodType> {
  const shape: Record<string, z.ZodType> = {};
  for (const { key, secret, schema, isRequired, fields: inner } of fields) {
    if (inner !== null) {
      const object = z.strictObject(toShape(inner));
      shape[key] = isRequired ? object : object.optional();
    } else if (secret === "no") shape[key] = schema;
    else {
      shape[`${key}_file`] = (secret === "one" ? fileReference : z.array(fileReference).min(1)).optional();
      shape[`${key}_env`] = (
        secret === "one" ? variableReference : z.array(variableReference).min(1)
      ).optional();
    }
  }
  return shape;
}

const [first, ...rest] = [...channelFields].map(([kind, fields]) => toEntrySchema(kind, fields));
if (first === undefined) throw new Error("there is no kind of channel");

/** One channel in the file. Every secret is a reference, so that the file itself holds no secret. */
export const channelEntry = z.discriminatedUnion("kind", [first, ...rest]);
