import path from "node:path";
import { type ChannelConfig, channelConfig } from "../channel/channel-config.ts";
import { openNotifier } from "../channel/open-notifier.ts";
import { UsageError } from "../errors.ts";
import { readSmallFile } from "../read-small-file.ts";
import { type ChannelEntry, type ChannelField, channelFields } from "./channel-entry.ts";

/** Where references lead. */
export interface Surroundings {
  /** Of the configuration file; its relative paths begin here. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly allowPrivateNetworks: boolean;
}

/** One entry of the file with its secrets read; null, with every mistake in `mistakes`, where it cannot be used. */
export function readChannel(
  name: string,
  entry: ChannelEntry,
  surroundings: Surroundings,
  mistakes: string[],
): ChannelConfig | null {
  const before = mistakes.length;
  const fields = channelFields.get(entry.kind) ?? [];
  const values = {
    ...readFields(`channels.${name}`, fields, entry, surroundings, mistakes),
    kind: entry.kind,
    name,
  };
  if (mistakes.length > before) return null;
  const parsed = channelConfig.safeParse(values);
  if (!parsed.success) {
    // Of what a secret looks like nothing may be said but the rule.
    mistakes.push(
      ...parsed.error.issues.map((issue) => `channels.${name}.${issue.path.join(".")}: ${issue.message}`),
    );
    return null;
  }
  return checkOpening(parsed.data, surroundings, mistakes) ? parsed.data : null;
}

function readFields(
  at: string,
  fields: readonly ChannelField[],
  entry: Readonly<Record<string, unknown>>,
  surroundings: Surroundings,
  mistakes: string[],
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    const given = entry[field.key];
    const inner = given as Readonly<Record<string, unknown>>;
    const value =
      field.fields !== null && given !== undefined
        ? readFields(`${at}.${field.key}`, field.fields, inner, surroundings, mistakes)
        : field.secret === "no"
          ? given
          : readSecrets(at, field, entry, surroundings, mistakes);
    if (value !== undefined) values[field.name] = value;
  }
  return values;
}

/** What the channel itself has against its addresses and secrets; it connects nowhere yet. */
function checkOpening(config: ChannelConfig, surroundings: Surroundings, mistakes: string[]): boolean {
  const terminal = { write: () => true } as never;
  const { allowPrivateNetworks } = surroundings;
  try {
    openNotifier(config, { terminal, clock: () => 0, network: { allowPrivateNetworks } });
    return true;
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    mistakes.push(...thrown.mistakes.map((mistake) => `channels.${config.name}: ${mistake}`));
    return false;
  }
}

function readSecrets(
  at: string,
  { key, secret, isRequired }: ChannelField,
  entry: Readonly<Record<string, unknown>>,
  surroundings: Surroundings,
  mistakes: string[],
): unknown {
  const [files, names] = [listOf(entry[`${key}_file`]), listOf(entry[`${key}_env`])];
  const given = files.length + names.length;
  if (given === 0) {
    if (isRequired) mistakes.push(`${at}.${key}: not set: must be given as ${key}_file or ${key}_env`);
    return undefined;
  }
  if (secret === "one" && given > 1) {
    mistakes.push(`${at}.${key}_file: must not be given together with ${key}_env`);
    return undefined;
  }
  const found = [
    ...files.map((file) => readFile(`${at}.${key}_file`, file, surroundings, mistakes)),
    ...names.map((name) => readVariable(`${at}.${key}_env`, name, surroundings, mistakes)),
  ].filter((text) => text !== null);
  return secret === "one" ? found[0] : found;
}

function listOf(value: unknown): string[] {
  return value === undefined ? [] : ([value].flat() as string[]);
}

function readFile(at: string, file: string, { folder }: Surroundings, mistakes: string[]): string | null {
  // Somebody may have put the secret itself here: only what looks like a path is shown.
  const shown = /^[./]/.test(file) && !file.includes("://") ? JSON.stringify(file) : "[not shown]";
  try {
    const text = readSmallFile(path.resolve(folder, file)).replace(/\r?\n$/, "");
    if (text !== "") return text;
    mistakes.push(`${at}: ${shown}: must not be empty`);
  } catch {
    mistakes.push(`${at}: ${shown}: must be a readable file`);
  }
  return null;
}

function readVariable(at: string, name: string, { env }: Surroundings, mistakes: string[]): string | null {
  const text = env[name];
  if (text !== undefined && text !== "") return text;
  mistakes.push(`${at}: [not shown]: must be the name of an environment variable that is set`);
  return null;
}
