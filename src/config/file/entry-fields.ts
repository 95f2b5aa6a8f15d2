import { z } from "zod";

/** A field of an entry with a kind, such as a channel: its name in code and its key in the file. */
export interface EntryField {
  /** `routingKey`. */
  readonly name: string;
  /** `routing_key`; a secret adds `_file` or `_env`. */
  readonly key: string;
  readonly secret: "no" | "one" | "many";
  readonly isRequired: boolean;
  /** The inner fields of an object, or null. */
  readonly fields: readonly EntryField[] | null;
  readonly schema: z.ZodType;
}

/** The fields of each kind. */
export type FieldsByKind = ReadonlyMap<string, readonly EntryField[]>;

/** Returns the fields of each kind's settings. `shared` are settings that every kind has. */
export function toFieldsByKind(
  definitions: readonly { readonly kind: string; readonly settings: z.ZodRawShape }[],
  shared: z.ZodRawShape = {},
): FieldsByKind {
  return new Map(
    definitions.map(({ kind, settings }) => [kind, toFields({ ...settings, ...shared } as Settings)]),
  );
}

type Settings = Readonly<Record<string, z.ZodType>>;

function toFields(settings: Settings): readonly EntryField[] {
  return Object.entries(settings).map(([name, schema]) => toField(name, schema));
}

export function toField(name: string, schema: z.ZodType): EntryField {
  const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const isRequired = !schema.safeParse(undefined).success;
  const bare = unwrap(schema);
  const item = bare instanceof z.ZodArray ? unwrap(bare.element as z.ZodType) : null;
  const secret = holdsSecret(bare) ? "one" : item !== null && holdsSecret(item) ? "many" : "no";
  const fields = bare instanceof z.ZodObject ? toFields(bare.shape) : null;
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

function toEntrySchema(kind: string, fields: readonly EntryField[]) {
  const shape = { kind: z.literal(kind), ...toShape(fields) };
  return z.strictObject(shape);
}

export function toShape(fields: readonly EntryField[]): Record<string, z.ZodType> {
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

/** Returns the schema of an entry in the file. Every secret is a reference, so that the file itself holds no secret. */
export function toEntryUnion(fields: FieldsByKind) {
  const [first, ...rest] = [...fields].map(([kind, one]) => toEntrySchema(kind, one));
  if (first === undefined) throw new Error("there is no kind");
  return z.discriminatedUnion("kind", [first, ...rest]);
}
