import path from "node:path";
import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { findSecretFault, readCertificates, readSecretText } from "../secret-file.ts";
import { type EntryField, type FieldsByKind, fileReference, variableReference } from "./entry-fields.ts";

/** The context in which references are resolved. */
export interface ReferenceContext {
  /** The folder of the configuration file. Its relative paths start there. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly allowPrivateNetworks: boolean;
  /** Whether an entry is read although its secrets are not here. It then has those of the kind's example. */
  readonly areSecretsElsewhere?: boolean;
  /** Is called with each file of a secret and its place in the configuration file. */
  readonly onSecretFile?: (file: string, place: string) => void;
}

/** The kinds of entries in a part of the file. */
export interface EntryKinds<Read> {
  readonly part: "channels" | "forward";
  readonly fields: FieldsByKind;
  /** The entry as the file has it. */
  readonly entry: z.ZodType;
  /** Valid settings of a kind. */
  readonly exampleOf: (kind: string) => Readonly<Record<string, unknown>> | undefined;
  /** Parses settings with their secrets, and the kind and the name. Null if they are incomplete. */
  readonly parse: (settings: { readonly kind: string; readonly name: string }) => Read | null;
  /** Returns what would prevent sending. */
  readonly check: (read: Read) => readonly string[];
}

/**
 * Reads one entry of the file with its secrets. Returns null where it cannot be used. `mistakes` receives what the file's
 * schema cannot find: missing secrets, and addresses and secrets that the kind refuses. Fields that the schema refuses are
 * skipped, so that one mistake does not hide another.
 */
export function readEntry<Read>(
  { part, fields: byKind, entry: schema, exampleOf, parse, check }: EntryKinds<Read>,
  { name, entry }: { readonly name: string; readonly entry: unknown },
  context: ReferenceContext,
  mistakes: string[],
): Read | null {
  if (!isObject(entry)) return null;
  const kind = String(entry["kind"]);
  const fields = byKind.get(kind);
  const example = exampleOf(kind);
  if (fields === undefined || example === undefined) return null;
  const before = mistakes.length;
  const values = readFields(`${part}.${name}`, fields, entry, context, mistakes);
  const isWhole = mistakes.length === before && schema.safeParse(entry).success;
  // With the example's settings where the file's are wrong, the entry's other settings can be checked.
  const required = fields.filter(({ isRequired }) => isRequired);
  const filled = Object.fromEntries(required.map((field) => [field.name, example[field.name]]));
  const read = parse({ ...filled, ...values, kind, name });
  // The schema or the lines above have listed the mistakes.
  if (read === null) return null;
  const refused = check(read);
  mistakes.push(...refused.map((mistake) => `${part}.${name}: ${mistake}`));
  return isWhole && refused.length === 0 ? read : null;
}

export function readFields(
  at: string,
  fields: readonly EntryField[],
  entry: Readonly<Record<string, unknown>>,
  context: ReferenceContext,
  mistakes: string[],
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    const given = entry[field.key];
    if (field.fields !== null) {
      if (!isObject(given)) continue;
      const inner = readFields(`${at}.${field.key}`, field.fields, given, context, mistakes);
      if (field.schema.safeParse(inner).success) values[field.name] = inner;
    } else if (field.secret !== "no") {
      const secrets = readSecrets(at, field, entry, context, mistakes);
      if (secrets !== undefined) values[field.name] = secrets;
    } else if (field.name === "caFile") {
      const text = readCaFile(`${at}.${field.key}`, given, context, mistakes);
      if (text !== null) values[field.name] = text;
    } else if (given !== undefined && field.schema.safeParse(given).success) values[field.name] = given;
  }
  return values;
}

function readCaFile(at: string, file: unknown, context: ReferenceContext, mistakes: string[]): string | null {
  // The file's schema names a value of another type.
  if (typeof file !== "string" || file === "") return null;
  const text = readCertificates(path.resolve(context.folder, file));
  if (text === null && context.areSecretsElsewhere !== true)
    mistakes.push(`${at}: ${JSON.stringify(file)}: must be a file of certificates in PEM`);
  return text;
}

function readSecrets(
  at: string,
  { key, secret, isRequired }: EntryField,
  entry: Readonly<Record<string, unknown>>,
  context: ReferenceContext,
  mistakes: string[],
): unknown {
  const files = listOf(entry[`${key}_file`], fileReference);
  const names = listOf(entry[`${key}_env`], variableReference);
  // The file's schema names the mistake.
  if (files === null || names === null) return undefined;
  const given = files.length + names.length;
  if (given === 0) {
    if (isRequired) mistakes.push(`${at}.${key}: not set: must be given as ${key}_file or ${key}_env`);
    return undefined;
  }
  if (secret === "one" && given > 1) {
    mistakes.push(`${at}.${key}_file: must not be given together with ${key}_env`);
    return undefined;
  }
  const noted = context.areSecretsElsewhere === true ? [] : mistakes;
  const found = [
    ...files.map((file) => readFile(`${at}.${key}_file`, file, context, noted)),
    ...names.map((name) => readVariable(`${at}.${key}_env`, name, context, noted)),
  ].filter((text) => text !== null);
  // If one secret cannot be read, the others must not be used as if they were all.
  if (found.length < given) return undefined;
  return secret === "one" ? found[0] : found;
}

/** Returns the references as a list, or null if one of them is invalid. */
function listOf(value: unknown, reference: z.ZodType<string>): string[] | null {
  const parsed = z.array(reference).safeParse(value === undefined ? [] : [value].flat());
  return parsed.success ? parsed.data : null;
}

function readFile(at: string, file: string, context: ReferenceContext, mistakes: string[]): string | null {
  // A person may have typed the secret itself here, so only text that looks like a path is shown.
  const shown = /^[./]/.test(file) && !file.includes("://") ? JSON.stringify(file) : "[not shown]";
  try {
    const full = path.resolve(context.folder, file);
    context.onSecretFile?.(full, at);
    const text = readSecretText(full);
    const fault = findSecretFault(text);
    if (fault === null) return text;
    mistakes.push(`${at}: ${shown}: ${fault}`);
  } catch {
    mistakes.push(`${at}: ${shown}: must be a readable file`);
  }
  return null;
}

/** A person may have typed the secret itself, so only text that is written as such names are is shown. */
const VARIABLE_NAME = /^(?=.{3,60}$)[A-Z][A-Z0-9]*(_[A-Z0-9]{2,20})+$/;

function readVariable(at: string, name: string, { env }: ReferenceContext, mistakes: string[]) {
  const text = env[name];
  if (text !== undefined && text !== "") return text;
  const shown = VARIABLE_NAME.test(name) ? JSON.stringify(name) : "[not shown]";
  mistakes.push(`${at}: ${shown}: must be the name of an environment variable that is set`);
  return null;
}
