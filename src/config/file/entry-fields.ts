/** The fields of an entry: of a channel, of a destination, of zones and durations. */
import { z } from "zod";
import { WrittenFilters, WrittenQuery } from "#archive/rules/query/read-search.ts";
import { CHANNELS } from "#delivery/receivers/channels/registry.ts";
import { SINKS } from "#delivery/receivers/sinks/destination.ts";
import { EVENT_FORMATS, SPIKE_SEVERITIES } from "#model/kinds.ts";

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
function toFieldsByKind(
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
function toEntryUnion(fields: FieldsByKind) {
  const [first, ...rest] = [...fields].map(([kind, one]) => toEntrySchema(kind, one));
  if (first === undefined) throw new Error("there is no kind");
  return z.discriminatedUnion("kind", [first, ...rest]);
}

/** The settings of each kind of channel. The channel's name is the key of its entry in the file. */
export const channelFields = toFieldsByKind(CHANNELS);

/** One channel in the file. */
export const channelEntry = toEntryUnion(channelFields);

const ZONE_NAME_RULE = "must be text of 1 to 40 printable characters that is no number";
export const zoneName = z
  .string(ZONE_NAME_RULE)
  .regex(/^(?!\d+$)[^\p{C}\p{Z}]+(?: [^\p{C}\p{Z}]+)*$/u, ZONE_NAME_RULE)
  .max(40, ZONE_NAME_RULE);
export const zones = z
  .array(z.union([z.int().positive(), zoneName], "must be a zone's number, or its name in zones"))
  .min(1);

/** The names of accounts where a matcher or a role refers to them. */
export const accounts = z.array(z.string()).min(1);

const START_RULE = "must be now, all, or a time before now such as -72h";
const BATCH_RULE = "must be a whole number from 1 to 5000";

/** The settings that every destination has besides those of its kind. */
const shared = {
  zones: zones.optional().describe("numbers, or names from zones; if missing, every zone"),
  where: WrittenFilters.min(1)
    .optional()
    .describe("filters such as action:eq:block, as of `longwatch search`; all must match"),
  format: z
    .enum(EVENT_FORMATS)
    .default("event")
    .describe("raw: the record as received; event: Longwatch's own form; ocsf: Open Cybersecurity Schema"),
  batchEvents: z.int(BATCH_RULE).min(1, BATCH_RULE).max(5_000, BATCH_RULE).default(500),
  start: z
    .string(START_RULE)
    .regex(/^(?:now|all|-(?:\d{1,6}[smhd])+)$/, START_RULE)
    .default("now")
    .describe("the events with which a new destination begins; all: every kept event"),
};

/** Settings that every destination has. */
export const destinationSettings = z.object(shared);

export const forwardFields = toFieldsByKind(SINKS, shared);

/** One destination in the file. */
export const forwardEntry = toEntryUnion(forwardFields);

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LONGEST_MS = 30 * 86_400_000;

export function toMs(text: string): number {
  return [...text.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ""] ?? 0),
    0,
  );
}

const DURATION_RULE = "must be a time such as 30s, 5m, 4h or 1h30m, at most 30d";
/** The result is in milliseconds. */
export const duration = z
  .string(DURATION_RULE)
  .regex(/^(\d{1,6}[smhd])+$/, DURATION_RULE)
  .refine((text) => toMs(text) <= LONGEST_MS, DURATION_RULE)
  .transform(toMs);

/** A custom condition. `readCondition` checks what its members are together. */
export const conditionEntry = z.strictObject({
  where: WrittenFilters.optional().describe(
    "filters such as path:wildcard:/admin*, as of `longwatch search`; all must match",
  ),
  query: WrittenQuery.optional().describe("text in address, rule, URL, user agent or message"),
  zone: zones
    .optional()
    .describe(
      "numbers, or names from zones; if missing, every zone. Each is counted by itself: counts are not added up",
    ),
  more_than: z
    .int()
    .min(0)
    .optional()
    .describe("the count that is not yet an alert; if missing 0: any event is one"),
  distinct: z.string().optional().describe("the field whose different values are counted, instead of events"),
  absent: z.boolean().optional().describe("true: the alert is that no event came"),
  within: z
    .lazy(() => duration)
    .default(3_600_000)
    .describe("the window, from 1m to 24h; if missing 1h"),
  severity: z.enum(SPIKE_SEVERITIES).optional().describe("if missing, warning"),
});
