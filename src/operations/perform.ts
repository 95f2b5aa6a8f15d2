/** Performs an operation for a caller: rights, masking and audit. */
import { z } from "zod";
import { maskAddress, maskText } from "#archive/rules/mask.ts";
import type { Queryable } from "#db/client.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { isObject } from "#lib/json.ts";
import { actorOf } from "./caller.ts";
import type { Changed, Changing, Operation } from "./operation.ts";
import { Refusal } from "./refusal.ts";
import { requireAccounts } from "./require-known.ts";

/** Everything that operations need, without the transaction that `perform` opens for a change. */
export type PerformContext = Omit<Changing, "tx" | "afterCommit">;

/**
 * Runs an operation for its caller. A change and its audit entry are one transaction. A masked caller gets addresses and
 * free texts masked. The face has validated the input and checked scope and zone.
 */
export async function perform(
  operation: Operation,
  context: PerformContext,
  input: unknown,
): Promise<unknown> {
  const output = operation.changes
    ? await makeChange(context, (changing) => operation.run(changing, input), operation.isLong)
    : await operation.run(context, chooseZones(operation, context, input));
  return context.caller.masked ? maskOutput(operation.output as z.ZodType, output) : output;
}

/**
 * Returns the input of a question with the zones of its account, if it names one, in the place of `zone`.
 * @throws {Refusal} 400 for an account beside zones, 422 for an unknown account
 */
function chooseZones({ input: schema }: Operation, { service, caller }: PerformContext, input: unknown) {
  if (!isObject(input) || !Object.hasOwn(schema.shape, "account")) return input;
  const { account, ...others } = input;
  const { zone } = others;
  if (account === undefined) return others;
  if (zone !== undefined && zone !== "all")
    throw new Refusal(400, {
      slug: "invalid-request",
      mistakes: [{ field: "account", value: JSON.stringify(account), rule: "must be left out beside zone" }],
    });
  return { ...others, zone: requireAccounts(service, [account as string], "account", caller) };
}

/**
 * Makes a change and writes its audit entries in one transaction, up to five times if Postgres asks for it. A long change
 * runs outside a transaction.
 */
export async function makeChange<Output>(
  context: PerformContext,
  run: (changing: Changing) => Promise<Changed<Output>>,
  isLong = false,
): Promise<Output> {
  const work: (() => Promise<unknown>)[] = [];
  const { database, caller } = context;
  const runIn = async (tx: Queryable) => {
    work.length = 0;
    const { output, audit } = await run({ ...context, tx, afterCommit: (one) => work.push(one) });
    for (const note of [audit ?? []].flat()) await writeAuditEntry(tx, { actor: actorOf(caller), ...note });
    return output;
  };
  const made = await (isLong ? runIn(database.db) : inTransaction(database, ({ tx }) => runIn(tx)));
  for (const one of work) await one();
  return made;
}

/**
 * How an answer shows a text to a masked key. `address` and `text`: with shortened addresses. `nothing`: as null. `open`:
 * unchanged, because the text holds no address.
 */
type Masked = "address" | "text" | "nothing" | "open";

declare module "zod" {
  interface GlobalMeta {
    /** How an answer shows the value to a masked key. A function gets the whole value. */
    masked?: Masked | ((value: never) => unknown);
    /** The name of the flag, if it is not the member's; null where the command line has none. */
    flag?: string | null;
    /** The value that the command line sends without the flag, if it differs from the member's default. */
    flagDefault?: string;
    /** Whether the command line takes the member as arguments without a dash. Default: if it is a part of the path. */
    operand?: boolean;
    /** How the help shows the value. Default: by its type. */
    place?: string;
    /** JSON Schema of the value that a client sends, if the schema reads texts. */
    wire?: Record<string, unknown>;
    /** The command line takes a duration such as 30m. */
    unit?: "minutes" | "ms";
    /** A word that is "true" or "false" in a query and a flag without a value on the command line. */
    isSwitch?: true;
    /** The command line takes the member's texts from a file, too: `--id @FILE`. */
    lines?: true;
    /** The command line takes a relative time such as -2h. */
    time?: true;
  }
}

const MASKS: Readonly<Record<Masked, (value: unknown) => unknown>> = {
  address: (value) => (typeof value === "string" ? maskAddress(value) : value),
  text: (value) => (typeof value === "string" ? maskText(value) : value),
  nothing: () => null,
  open: (value) => value,
};

type Mask = (value: unknown) => unknown;
/** Null if no part of the schema is masked. */
const masks = new WeakMap<z.core.$ZodType, Mask | null>();

/** Masks the parts of a value that its schema says are masked. */
export function maskOutput(schema: z.core.$ZodType, value: unknown): unknown {
  const mask = maskOf(schema);
  return mask === null ? value : mask(value);
}

function maskOf(schema: z.core.$ZodType): Mask | null {
  const known = masks.get(schema);
  if (known !== undefined) return known;
  const mask = makeMask(schema);
  masks.set(schema, mask);
  return mask;
}

function makeMask(schema: z.core.$ZodType): Mask | null {
  const { masked } = z.globalRegistry.get(schema) ?? {};
  if (masked === "open") return null;
  if (typeof masked === "function") return masked as Mask;
  if (masked !== undefined) return (value) => (value === null ? null : deep(MASKS[masked], value));
  if (schema instanceof z.ZodObject) return maskMembers(schema.shape);
  if (schema instanceof z.ZodArray) return maskEach(maskOf(schema.element));
  if (schema instanceof z.ZodRecord) return maskValues(maskOf(schema.valueType));
  if (schema instanceof z.ZodUnion) return maskOption(schema.options);
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) {
    const mask = maskOf(schema.unwrap());
    return mask === null ? null : (value) => (value === null || value === undefined ? value : mask(value));
  }
  return null;
}

/** A mask on a list or on an object is that of each text in it. */
function deep(mask: Mask, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => deep(mask, one));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, deep(mask, one)]));
  return mask(value);
}

function maskMembers(shape: Readonly<Record<string, z.core.$ZodType>>): Mask | null {
  const members = Object.entries(shape).flatMap(([name, schema]) => {
    const mask = maskOf(schema);
    return mask === null ? [] : [[name, mask] as const];
  });
  if (members.length === 0) return null;
  return (value) => {
    if (!isObject(value)) return value;
    const changed = members
      .filter(([name]) => Object.hasOwn(value, name))
      .map(([name, mask]) => [name, mask(value[name])]);
    return { ...value, ...Object.fromEntries(changed) };
  };
}

function maskEach(mask: Mask | null): Mask | null {
  return mask === null ? null : (value) => (Array.isArray(value) ? value.map(mask) : value);
}

function maskValues(mask: Mask | null): Mask | null {
  if (mask === null) return null;
  return (value) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mask(one)]))
      : value;
}

/** Masks a value by the first option that it fits. */
function maskOption(options: readonly z.core.$ZodType[]): Mask | null {
  if (options.every((option) => maskOf(option) === null)) return null;
  return (value) => {
    const option = options.find((one) => z.safeParse(one, value).success);
    return option === undefined ? value : maskOutput(option, value);
  };
}

/** Returns the paths of texts in an output without a decision how a masked key sees them. */
export function findUndecided(
  schema: z.core.$ZodType,
  path = "",
  seen = new Set<z.core.$ZodType>(),
): string[] {
  if (z.globalRegistry.get(schema)?.masked !== undefined || seen.has(schema)) return [];
  seen.add(schema);
  const below = (one: z.core.$ZodType, name: string) => findUndecided(one, `${path}${name}`, new Set(seen));
  if (schema instanceof z.ZodObject)
    return Object.entries(schema.shape).flatMap(([name, one]) => below(one as z.core.$ZodType, `.${name}`));
  if (schema instanceof z.ZodArray) return below(schema.element, "[]");
  if (schema instanceof z.ZodRecord) return below(schema.valueType, ".*");
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((one) => below(one, ""));
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return below(schema.unwrap(), "");
  return schema instanceof z.ZodString || schema instanceof z.ZodUnknown ? [path] : [];
}
