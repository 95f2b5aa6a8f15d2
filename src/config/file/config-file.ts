import path from "node:path";
import { LineCounter, parseDocument } from "yaml";
import type { Routing } from "#alerts/rules/routing/routing.ts";
import { type ChannelConfig, findChannel } from "#delivery/receivers/channels/registry.ts";
import type { DestinationConfig } from "#delivery/receivers/sinks/destination.ts";
import { type Detection, FLOOR } from "#detection/rules/detection-settings.ts";
import { systemClock } from "#lib/clock.ts";
import { toError } from "#lib/errors.ts";
import { isObject } from "#lib/json.ts";
import { closestName } from "#lib/text.ts";
import { type ActionStates, BUILT_IN_ACTIONS, createActionStates } from "#model/action-class.ts";
import { MAX_LINKS } from "#model/alert-message.ts";
import type { CustomCondition } from "#model/custom-condition.ts";
import { KNOWN_KINDS } from "#model/kinds.ts";
import { findTooManyKnown, type KnownSource } from "#model/known-source.ts";
import type { Schedule } from "#model/schedule.ts";
import type { Zones } from "#model/zones.ts";
import { readSmallFile } from "../secret-file.ts";
import { type Account, readAccounts } from "./accounts-entry.ts";
import { type ConfigFile, configFile } from "./config-file-schema.ts";
import { describeIssues } from "./describe-issues.ts";
import { readChannel, readConditions, readDestination } from "./read-destinations.ts";
import type { ReferenceContext } from "./read-entry.ts";
import { looseZonesOf, resolveZone } from "./resolve-zones.ts";
import { readSignIn, type SignIn } from "./sign-in-entry.ts";
import { findMismatches, toRouting } from "./to-routing.ts";

/** The settings of the file. A running service reads all but accounts, actions, schedule and destinations again. */
export interface Alerting {
  /** The accounts of the file, beside that of the EDGE_ variables. */
  readonly accounts: readonly Account[];
  readonly channels: readonly ChannelConfig[];
  /** Destinations of forwarded events. */
  readonly destinations: readonly DestinationConfig[];
  readonly routing: Routing;
  readonly detection: Detection;
  /** The custom conditions of the file. */
  readonly conditions: readonly CustomCondition[];
  /** Reads from actions whether requests were stopped, by the words of the file and the built-in ones. */
  readonly actions: ActionStates;
  /** Null if people sign in with keys only. */
  readonly signIn: SignIn | null;
  /** The channels that get the weekly digest. */
  readonly digestChannels: readonly string[];
  /** The files of secrets that the file names, and where it does. */
  readonly secretFiles: readonly { readonly file: string; readonly place: string }[];
  /** The cron expressions that the file sets. */
  readonly schedule: Partial<Schedule>;
}

export interface ConfigFileOptions extends Omit<ReferenceContext, "folder"> {
  /** The channels of the environment. They are used if the file has no channels; with both, the file is refused. */
  readonly channels: readonly ChannelConfig[];
  /** The address that people use; every message links to its alert there. Null: none is known. */
  readonly publicUrl: string | null;
  /** The threshold score if the file sets none. */
  readonly spikeZ: number;
  /** The account of the EDGE_ variables. */
  readonly edge: { readonly url: string | null; readonly zones: readonly number[] };
}

/** Returns the settings without a file: every alert goes to every channel. */
export function defaultAlerting(
  options: Pick<ConfigFileOptions, "channels" | "publicUrl" | "spikeZ">,
): Alerting {
  const { channels } = options;
  const none = { accounts: [], destinations: [], knownSources: [], conditions: [], signIn: null };
  const read = { ...none, channels, secretFiles: [] };
  return toAlerting({}, read, { ...options, zones: {} });
}

type Read = Pick<
  Alerting,
  "accounts" | "channels" | "destinations" | "conditions" | "signIn" | "secretFiles"
> &
  Pick<Detection, "knownSources">;

/** Returns the settings of a file without mistakes, with the default of each setting that it does not have. */
function toAlerting(
  file: ConfigFile,
  { knownSources, ...read }: Read,
  { publicUrl, spikeZ, zones }: Pick<ConfigFileOptions, "publicUrl" | "spikeZ"> & { readonly zones: Zones },
): Alerting {
  const {
    z = spikeZ,
    floor = FLOOR,
    sources = "on",
    verify_crawlers: verifyCrawlers = true,
  } = file.detection ?? {};
  const overrides = (file.detection?.overrides ?? []).map((one) => toOverride(one, zones));
  const routing = toRouting(
    file,
    read.channels.map(({ name }) => name),
    zones,
  );
  return {
    ...read,
    routing: { ...routing, links: [...consoleLinks(publicUrl), ...routing.links] },
    detection: { z, floor, sources, verifyCrawlers, knownSources, overrides },
    actions: file.actions === undefined ? BUILT_IN_ACTIONS : createActionStates(file.actions),
    digestChannels: file.digest?.channels ?? [],
    schedule: dropUnset(file.schedule ?? {}),
  };
}

/** The result of reading a configuration file. */
export interface ReadConfigFile {
  /** Null if there is a mistake. */
  readonly alerting: Alerting | null;
  /** Every mistake with path, value and rule. A value that may be a secret is not shown. */
  readonly mistakes: readonly string[];
  /** Names of the channels, or null if they cannot be read. */
  readonly channels: readonly string[] | null;
}

/** Reads channels, destinations, routes and detection from a YAML file. Every check runs, so that all mistakes are listed. */
export function readConfigFile(file: string, options: ConfigFileOptions): ReadConfigFile {
  const { input, mistakes: syntax } = readYaml(file);
  if (input === undefined) return { alerting: null, mistakes: syntax, channels: null };
  const foreign = findForeign(file, input);
  if (foreign !== null) return { alerting: null, mistakes: [foreign], channels: null };
  const parsed = configFile.safeParse(input);
  const mistakes = parsed.success ? [] : describeIssues(configFile, input, parsed.error.issues);
  const secretFiles: Alerting["secretFiles"][number][] = [];
  const context = {
    ...options,
    folder: path.dirname(path.resolve(file)),
    onSecretFile: (secret: string, place: string) => void secretFiles.push({ file: secret, place }),
  };
  const entries = isObject(input) ? input["channels"] : undefined;
  const channels = isObject(entries)
    ? Object.entries(entries).flatMap(([name, entry]) => readChannel(name, entry, context, mistakes) ?? [])
    : options.channels;
  if (entries !== undefined && options.channels.some(({ kind }) => kind !== "terminal"))
    mistakes.push("channels: must be left out if a LONGWATCH_WEBHOOK_ or LONGWATCH_SLACK_ variable is set");
  const names = isObject(entries)
    ? Object.keys(entries)
    : entries === undefined
      ? options.channels.map(({ name }) => name)
      : null;
  const accounts = readAccounts(isObject(input) ? input["accounts"] : undefined, context, mistakes);
  const zones = looseZonesOf(input, accounts, options.edge.zones);
  const forward = isObject(input) && isObject(input["forward"]) ? Object.entries(input["forward"]) : [];
  const forwardContext = { ...context, zones };
  const destinations = forward.flatMap(
    ([name, entry]) => readDestination(name, entry, forwardContext, mistakes) ?? [],
  );
  const mostLinks = MAX_LINKS - Number(options.publicUrl !== null);
  mistakes.push(...findMismatches(input, names, { mostLinks, zones }));
  const signIn = readSignIn(isObject(input) ? input["sign_in"] : undefined, { ...context, zones }, mistakes);
  const known = mistakes.length > 0 ? [] : (parsed.data?.detection?.known_sources ?? []);
  const knownSources = known.flatMap((one) => toKnown(one, zones));
  const tooMany = findTooManyKnown(knownSources, { nowMs: systemClock() });
  if (tooMany !== null) mistakes.push(`detection.known_sources: ${tooMany.count} patterns: ${tooMany.rule}`);
  const conditions = mistakes.length > 0 ? [] : readConditions(parsed.data?.conditions, zones, mistakes);
  const digestChannels = parsed.data?.digest?.channels ?? [];
  for (const { name, kind } of channels)
    if (digestChannels.includes(name) && findChannel(kind)?.capabilities.laterTransitions === "same-incident")
      mistakes.push(
        `digest.channels: "${name}": must be a channel that shows messages; ${kind} has alerts only`,
      );
  const all = [...syntax, ...mistakes.map((mistake) => `${file}: ${mistake}`)];
  if (!parsed.success || names === null || all.length > 0)
    return { alerting: null, mistakes: all, channels: names };
  const read = { accounts, channels, destinations, knownSources, conditions, signIn, secretFiles };
  const alerting = toAlerting(parsed.data, read, { ...options, zones });
  return { alerting, mistakes: [], channels: names };
}

/** The link that every message begins with: its alert in the console; and the events of a custom condition. */
function consoleLinks(publicUrl: string | null): Routing["links"] {
  if (publicUrl === null) return [];
  const events = { title: "Search its events", url: `${publicUrl}/explorer`, isSearch: true as const };
  return [
    { title: "Open in Longwatch", url: `${publicUrl}/alerts/{alert}`, matchers: {} },
    { ...events, matchers: { kind: ["custom-condition"] } },
  ];
}

type Override = NonNullable<NonNullable<ConfigFile["detection"]>["overrides"]>[number];

function toOverride({ zone, zone_labels, account, ...rest }: Override, zones: Zones) {
  return dropUnset({ zone: resolveZone({ zone, zone_labels, account }, zones), ...rest });
}

type Known = NonNullable<NonNullable<ConfigFile["detection"]>["known_sources"]>[number];

function toKnown({ zone, zone_labels, account, reason, until, ...patterns }: Known, zones: Zones) {
  const zoneIds = resolveZone({ zone, zone_labels, account }, zones) ?? null;
  const untilMs = until === undefined ? null : Date.parse(until);
  return KNOWN_KINDS.flatMap((kind) =>
    (patterns[kind] ?? []).map((pattern): KnownSource => ({ kind, pattern, zoneIds, reason, untilMs })),
  );
}

/** Returns a mistake if no top-level setting of the file is known. It may be any file, so nothing of it is quoted. */
function findForeign(file: string, input: unknown): string | null {
  const known = Object.keys(configFile.shape);
  const names = isObject(input) ? Object.keys(input) : null;
  const isOwn =
    names?.length === 0 ||
    names?.some((name) => name.length > 3 && closestName(name, known) !== null) === true;
  if (isOwn) return null;
  return `${file}: must be a Longwatch configuration file: known here: ${known.join(", ")}`;
}

function dropUnset<Value extends object>(
  value: Value,
): { [Key in keyof Value]: Exclude<Value[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never;
}

interface ReadYaml {
  /** Undefined if the file cannot be checked further. */
  readonly input: unknown;
  readonly mistakes: readonly string[];
}

/** Reads the YAML file. An empty file means the same as no file. */
function readYaml(file: string): ReadYaml {
  let text: string;
  try {
    text = readSmallFile(file);
  } catch (thrown) {
    const why = toError(thrown).message;
    const mistake = `LONGWATCH_CONFIG: ${JSON.stringify(file)}: must be a readable file (${why})`;
    return { input: undefined, mistakes: [mistake] };
  }
  const lines = new LineCounter();
  // The library's pretty messages are off, because they quote the lines around a mistake.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const found = [...document.errors, ...document.warnings];
  const mistakes = found.map(({ pos, code }) => {
    const { line, col } = lines.linePos(pos[0]);
    return `${file}: line ${line}, column ${col}: must be YAML (${code.toLowerCase().replaceAll("_", " ")})`;
  });
  // After any other syntax error, the meaning of the file is unknown.
  if (found.some(({ code }) => code !== "DUPLICATE_KEY")) return { input: undefined, mistakes };
  try {
    return { input: document.toJS() ?? {}, mistakes };
  } catch {
    const mistake = `${file}: must be YAML without aliases that grow without end`;
    return { input: undefined, mistakes: [...mistakes, mistake] };
  }
}
