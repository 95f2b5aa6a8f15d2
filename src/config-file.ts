import path from "node:path";
import { LineCounter, parseDocument } from "yaml";
import type { ChannelConfig } from "./channel/channel-config.ts";
import { closestName } from "./closest-name.ts";
import type { ChannelEntry } from "./config-file/channel-entry.ts";
import { configFile } from "./config-file/config-file-schema.ts";
import { describeIssues } from "./config-file/describe-issues.ts";
import { readChannel, type Surroundings } from "./config-file/read-channels.ts";
import { findMismatches, toRouting } from "./config-file/to-routing.ts";
import { toError, UsageError } from "./errors.ts";
import { isObject } from "./is-object.ts";
import { readSmallFile } from "./read-small-file.ts";
import type { Detection } from "./routing/detection.ts";
import { type Routing, routeToAll } from "./routing/routing.ts";
import { FLOOR } from "./spike/policy.ts";

/** What becomes an alert, who hears of it and how: all that a running service reads anew. */
export interface Alerting {
  readonly channels: readonly ChannelConfig[];
  readonly routing: Routing;
  readonly detection: Detection;
}

export interface ConfigFileOptions extends Omit<Surroundings, "folder"> {
  /** Those of the environment; the channels where the file names none, a mistake where it does. */
  readonly channels: readonly ChannelConfig[];
  /** What holds where the file says nothing else. */
  readonly spikeZ: number;
}

/** Without a file: every alert to every channel. */
export function defaultAlerting({
  channels,
  spikeZ,
}: Pick<ConfigFileOptions, "channels" | "spikeZ">): Alerting {
  const routing = routeToAll(channels.map(({ name }) => name));
  return { channels, routing, detection: { z: spikeZ, floor: FLOOR, overrides: [] } };
}

/**
 * Reads channels, routes and detection from a YAML file.
 * @throws {UsageError} listing every mistake as path in the file, value and rule; what may be a secret is not shown.
 */
export function readConfigFile(file: string, options: ConfigFileOptions): Alerting {
  const input = readYaml(file);
  refuseForeign(file, input);
  const parsed = configFile.safeParse(input);
  const mistakes = parsed.success ? [] : describeIssues(configFile, input, parsed.error.issues);
  if (!parsed.success) throw new UsageError(mistakes.map((mistake) => `${file}: ${mistake}`));
  const { channels: entries, detection = {} } = parsed.data;
  const surroundings = { ...options, folder: path.dirname(path.resolve(file)) };
  const channels =
    entries === undefined
      ? options.channels
      : Object.entries(entries).flatMap(
          ([name, entry]) => readChannel(name, entry as ChannelEntry, surroundings, mistakes) ?? [],
        );
  if (entries !== undefined && options.channels.some(({ kind }) => kind !== "terminal"))
    mistakes.push(
      "channels: must be left out, or the LONGWATCH_WEBHOOK_ and LONGWATCH_SLACK_ variables must be",
    );
  const names = entries === undefined ? channels.map(({ name }) => name) : Object.keys(entries);
  mistakes.push(...findMismatches(parsed.data, names));
  if (mistakes.length > 0) throw new UsageError(mistakes.map((mistake) => `${file}: ${mistake}`));
  const { z = options.spikeZ, floor = FLOOR, overrides = [] } = detection;
  return {
    channels,
    routing: toRouting(parsed.data, names),
    detection: { z, floor, overrides: overrides.map(dropUnset) },
  };
}

/** Whatever file is given is read, so nothing is quoted of a file of which no top-level setting is known. */
function refuseForeign(file: string, input: unknown): void {
  const known = Object.keys(configFile.shape);
  const names = isObject(input) ? Object.keys(input) : null;
  const isOwn =
    names?.length === 0 ||
    names?.some((name) => name.length > 3 && closestName(name, known) !== null) === true;
  if (isOwn) return;
  throw new UsageError([`${file}: must be a Longwatch configuration file: known here: ${known.join(", ")}`]);
}

function dropUnset<Value extends object>(
  value: Value,
): { [Key in keyof Value]: Exclude<Value[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never;
}

/** An empty file says nothing, as no file does. */
function readYaml(file: string): unknown {
  let text: string;
  try {
    text = readSmallFile(file);
  } catch (thrown) {
    const why = toError(thrown).message;
    throw new UsageError([`LONGWATCH_CONFIG: ${JSON.stringify(file)}: must be a readable file (${why})`]);
  }
  const lines = new LineCounter();
  // Without the library's pretty messages: those quote the lines around a mistake.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const mistakes = [...document.errors, ...document.warnings].map(({ pos, code }) => {
    const { line, col } = lines.linePos(pos[0]);
    return `${file}: line ${line}, column ${col}: must be YAML (${code.toLowerCase().replaceAll("_", " ")})`;
  });
  if (mistakes.length > 0) throw new UsageError(mistakes);
  try {
    return document.toJS() ?? {};
  } catch {
    throw new UsageError([`${file}: must be YAML without aliases that grow without end`]);
  }
}
