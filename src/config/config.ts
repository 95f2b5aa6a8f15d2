import path from "node:path";
import type { ChannelConfig } from "#delivery/receivers/channels/registry.ts";
import { readPauses } from "#lib/cron.ts";
import { UsageError } from "#lib/errors.ts";
import type { LogLevel } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import type { ProcessRole } from "#model/kinds.ts";
import { toSchedule } from "#model/schedule.ts";
import type { Retention } from "#people/rules/retention.ts";
import { aboutVariable, Environment, VARIABLES } from "./environment.ts";
import {
  allowsPrivate,
  checkFallback,
  findServiceMistakes,
  findUnknown,
  type Given,
  isPlain,
  readSecretFiles,
  show,
} from "./environment-mistakes.ts";
import { type Alerting, defaultAlerting, readConfigFile } from "./file/config-file.ts";
import { readDatabaseUrl } from "./read-database-url.ts";
import { openSecretFile, type Reread } from "./secret-file.ts";
import { toConfig, toEnvironmentChannels, toPublicUrl } from "./to-config.ts";

export interface RemoteService {
  /** Behind a proxy it may have a path. Without a slash at its end. */
  readonly url: string;
  readonly key: Secret;
}

export interface Config {
  readonly edge: {
    readonly url: string | null;
    readonly key: Secret | null;
    readonly zones: readonly number[];
    /** The limit for all replicas together. */
    readonly requestsPerSecond: number;
  };
  /** Null means the embedded Postgres in `dataDir`. */
  readonly databaseUrl: Secret | null;
  /** Null means that the queues are in Postgres. */
  readonly redisUrl: Secret | null;
  /** Certificates in PEM. Null means Node's own authorities. */
  readonly redisCa: string | null;
  /** Absolute. */
  readonly dataDir: string;
  readonly archive: {
    /** Absolute. */
    readonly folder: string;
    /** Null means that the folder keeps the files. */
    readonly bucket: {
      readonly name: string;
      /** Without slashes at its ends. */
      readonly prefix: string;
      readonly endpoint: string;
      readonly region: string;
      readonly accessKeyId: Secret;
      readonly secretAccessKey: Secret;
      readonly sessionToken: Secret | null;
      readonly cacheBytes: number;
    } | null;
    /**
     * Whether days are archived: the folder or a bucket was chosen, or it is beside the embedded Postgres. Beside
     * another server the data folder may be lost with a container, or differ between replicas.
     */
    readonly isWritten: boolean;
    /** How long Postgres keeps archive days. Null: as long as the events are kept. */
    readonly hotDays: number | null;
    /** How long after its end a day of the emulated platform is archived. Null: as with the real platform. */
    readonly archiveAfterMs: number | null;
  };
  readonly roles: readonly ProcessRole[];
  readonly http: {
    readonly host: string;
    readonly port: number;
    readonly queryTimeoutMs: number;
    readonly queryConnections: number;
    readonly queryMaxRows: number;
    readonly keyRequestsPerMinute: number;
    readonly keyCpuMsPerMinute: number;
    readonly addressRequestsPerMinute: number;
    readonly trustedProxies: readonly string[];
    /** Null means that the first start makes a key. */
    readonly adminKey: Secret | null;
    readonly areMetricsPublic: boolean;
    /** The address that people use, without a slash at its end. Null means that none is known. */
    readonly publicUrl: string | null;
  };
  /** The address of the console for links in messages, without a slash at its end. Null means that none is known. */
  readonly consoleUrl: string | null;
  /** The service elsewhere that commands ask instead of the database. */
  readonly remote: RemoteService | null;
  readonly logLevel: LogLevel;
  /** The longest time between two runs of the tick that polls. */
  readonly pollEveryMs: number;
  /** The age of a sealed hour at which its last comparison is written into its evidence. */
  readonly lastProofMs: number;
  readonly spikeZ: number;
  readonly advicePerHour: number;
  readonly adviceOnRequest: boolean;
  readonly retention: Retention;
  /** Null means that the key is in a file in `keyDir`. */
  readonly pseudonymKey: Secret | null;
  /** Absolute. */
  readonly keyDir: string;
  readonly channels: {
    readonly webhook: { readonly url: Secret; readonly secret: Secret } | null;
    readonly slack: { readonly url: Secret } | null;
    readonly allowPrivate: boolean;
  };
  /** Null means that OCSF objects name no vendor. */
  readonly platformVendor: string | null;
  /** The URL to which the service posts every minute; the whole URL is a secret. */
  readonly heartbeatUrl: Secret | null;
  /** Null means no fallback: notifications of a failing channel wait for that channel. */
  readonly fallback: { readonly channel: string; readonly afterMs: number } | null;
  /** Every variable as it was given. */
  readonly settings: readonly Setting[];
  /** The file that LONGWATCH_CONFIG names, absolute; null without one. */
  readonly file: string | null;
  /** The settings of the file that LONGWATCH_CONFIG names, or the defaults without a file. */
  readonly alerting: Alerting;
  /**
   * Reads `alerting` again.
   * @throws {UsageError} listing every mistake.
   */
  readonly rereadAlerting: () => Alerting;
  /** Reads the file of EDGE_API_KEY_FILE again, after which `edge.key` reveals its key. Without a file: `same`. */
  readonly rereadKey: () => Reread;
}

/**
 * The only reader of the environment. Empty variables count as unset.
 * @throws {UsageError} listing every mistake at once as variable, value and rule; a secret's value is never shown.
 */
export function parseConfig(env: NodeJS.ProcessEnv): Config {
  return read(env, () => []);
}

/**
 * Parses like `parseConfig`, for a command that sends nothing. The secrets that the configuration file refers to may be
 * where only the service can read them.
 */
export function parseConfigElsewhere(env: NodeJS.ProcessEnv): Config {
  return read(env, () => [], true);
}

/** Parses like `parseConfig`, for the service. Also checks settings that belong together and the addresses it posts to. */
export function parseServiceConfig(env: NodeJS.ProcessEnv): Config {
  return read(env, findServiceMistakes);
}

/** Describes every variable with the rule of its mistakes. A secret comes with its NAME_FILE. `fallback` is as typed. */
export function describeConfig(): readonly {
  readonly variables: readonly string[];
  readonly rule: string;
  readonly fallback: string | null;
  readonly description: string;
}[] {
  return VARIABLES.map((name) => {
    const { rule, description, fallback, isSecret } = aboutVariable(name);
    const variables = isSecret === true ? [name, `${name}_FILE`] : [name];
    return { variables, rule, fallback: fallback ?? null, description };
  });
}

export interface Setting {
  readonly name: string;
  /** The value as typed; null if there is none; `[secret]` for a secret. */
  readonly value: string | null;
  /** Whether the environment sets the variable or its NAME_FILE. */
  readonly isSet: boolean;
}

/**
 * Lists every variable with its value here.
 * @throws {UsageError} as `parseConfig`.
 */
export function listSettings(env: NodeJS.ProcessEnv): readonly Setting[] {
  return parseConfig(env).settings;
}

function toSettings(env: NodeJS.ProcessEnv): readonly Setting[] {
  return VARIABLES.map((name) => {
    const { isSecret, fallback } = aboutVariable(name);
    const given = [name, `${name}_FILE`].some((variable) => (env[variable] ?? "") !== "");
    const value = given ? (isSecret === true ? "[secret]" : (env[name] ?? null)) : (fallback ?? null);
    return { name, value, isSet: given };
  });
}

/**
 * Returns address and key for a command that calls the platform.
 * @throws {UsageError} naming the variables that are missing.
 */
export function requireEdge(config: Config): { baseUrl: string; accessKey: Secret } {
  const { url, key } = config.edge;
  const mistakes: string[] = [];
  if (url === null) mistakes.push("EDGE_API_URL: not set: must be the platform's address");
  if (key === null) mistakes.push("EDGE_API_KEY or EDGE_API_KEY_FILE: not set: must be an access key");
  if (url === null || key === null) throw new UsageError(mistakes);
  return { baseUrl: url, accessKey: key };
}

function read(
  env: NodeJS.ProcessEnv,
  findMore: (given: Given, alerting: Alerting | null) => string[],
  areSecretsElsewhere = false,
): Config {
  const entries = Object.entries(env).filter(([, value]) => value !== undefined && value !== "");
  const given = Object.fromEntries(entries) as Given;
  const mistakes = [...findUnknown(given), ...readSecretFiles(given), ...settleDatabaseUrl(given)];
  const parsed = Environment.safeParse(given);
  const wrong = new Set(parsed.error?.issues.map((issue) => issue.path[0]));
  for (const name of VARIABLES) {
    if (!wrong.has(name)) continue;
    const { rule, isSecret } = aboutVariable(name);
    mistakes.push(`${name}: ${isSecret === true ? "[secret]" : show(given[name])}: must be ${rule}`);
  }
  if ((given["LONGWATCH_URL"] === undefined) !== (given["LONGWATCH_KEY"] === undefined))
    mistakes.push("LONGWATCH_URL and LONGWATCH_KEY (or LONGWATCH_KEY_FILE) must be set together");
  if (isPlain(given["LONGWATCH_URL"]) && given["LONGWATCH_PLAIN_HTTP"] !== "true")
    mistakes.push(
      `LONGWATCH_URL: ${show(given["LONGWATCH_URL"])}: must be https, because http to another machine sends the key readably; LONGWATCH_PLAIN_HTTP=true or --plain-http allows it`,
    );
  const { data } = parsed;
  const named = wrong.has("LONGWATCH_FALLBACK_CHANNEL") ? undefined : given["LONGWATCH_FALLBACK_CHANNEL"];
  const spikeZ = data?.LONGWATCH_SPIKE_Z;
  const readFile = createAlertingReader(given, { env, areSecretsElsewhere, fallback: named, spikeZ });
  const readAlerting = () => {
    const { alerting, mistakes } = readFile();
    const all = [...findMore(given, alerting), ...mistakes];
    return { alerting: all.length > 0 ? null : alerting, mistakes: all };
  };
  const { alerting, mistakes: more } = readAlerting();
  mistakes.push(...more);
  if (data === undefined || alerting === null || mistakes.length > 0) throw new UsageError(mistakes);
  const rereadAlerting = () => {
    const read = readAlerting();
    if (read.alerting === null) throw new UsageError(read.mistakes);
    return read.alerting;
  };
  const config = toConfig(data);
  const { EDGE_API_KEY_FILE: keyFile } = given;
  const { EDGE_API_KEY: firstKey } = data;
  const key = keyFile === undefined || firstKey === undefined ? null : openSecretFile(keyFile, firstKey);
  const rereadKey = key?.reread ?? (() => "same" as const);
  const edge = { ...config.edge, key: key?.secret ?? config.edge.key };
  const { zones, requestsPerSecond } = config.edge;
  const polled = { isEmulated: false, zones: zones.length, requestsPerSecond };
  const pollEveryMs = readPauses(toSchedule(alerting.schedule, polled)["poll-events"]).longestMs;
  return Object.freeze({
    ...config,
    edge,
    pollEveryMs,
    consoleUrl: toConsoleUrl(given),
    settings: toSettings(env),
    alerting,
    rereadAlerting,
    rereadKey,
  });
}

/** Replaces DATABASE_URL by its complete form and returns the mistakes. The schema reports a text that is no URL. */
function settleDatabaseUrl(given: Given): string[] {
  const { DATABASE_URL: text = "" } = given;
  if (!/^postgres(?:ql)?:\/\//.test(text)) return [];
  const read = readDatabaseUrl(text);
  const isWrong = "mistake" in read;
  // The schema would report it a second time.
  given["DATABASE_URL"] = isWrong ? "postgres://mistaken" : read.url;
  return isWrong ? [`DATABASE_URL: ${read.mistake}`] : [];
}

interface AlertingSource {
  readonly env: NodeJS.ProcessEnv;
  readonly areSecretsElsewhere: boolean;
  /** Undefined if it is missing or wrong. */
  readonly fallback: string | undefined;
  /** Undefined if the environment has a mistake; the result is then not used. */
  readonly spikeZ: number | undefined;
}

/** Creates the reader of the configuration file. It also runs if the environment has mistakes, so that all mistakes are listed. */
function createAlertingReader(
  given: Given,
  { env, areSecretsElsewhere, fallback, spikeZ = 1 }: AlertingSource,
): () => { alerting: Alerting | null; mistakes: readonly string[] } {
  const channels = toChannelConfigs(toEnvironmentChannels(given));
  const { LONGWATCH_CONFIG: file } = given;
  const publicUrl = toConsoleUrl(given);
  const allowPrivateNetworks = allowsPrivate(given);
  const options = { env, areSecretsElsewhere, publicUrl, allowPrivateNetworks, channels, spikeZ };
  const names = channels.map(({ name }) => name);
  return () => {
    const read =
      file === undefined
        ? { alerting: defaultAlerting(options), mistakes: [], channels: names }
        : readConfigFile(path.resolve(file), options);
    const mistakes = [...read.mistakes, ...checkFallback(fallback, read.channels)];
    return { alerting: mistakes.length > 0 ? null : read.alerting, mistakes };
  };
}

/** The address on which HTTP listens. */
export function toOwnUrl({ host, port }: { readonly host: string; readonly port: number | string }): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Hosts that name no machine, or the reader's own one. */
const LOCAL_HOST = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|::1?|0\.0\.0\.0)$/;

/** Returns the public address, or the own one if this process listens for other machines. Null if neither is known. */
function toConsoleUrl(given: Given): string | null {
  const read = (name: "LONGWATCH_HOST" | "LONGWATCH_PORT" | "LONGWATCH_ROLES") =>
    given[name] ?? aboutVariable(name).fallback ?? "";
  const [host, port] = [read("LONGWATCH_HOST"), read("LONGWATCH_PORT")];
  const isReachable = read("LONGWATCH_ROLES").includes("http") && port !== "0" && !LOCAL_HOST.test(host);
  return toPublicUrl(given["LONGWATCH_PUBLIC_URL"]) ?? (isReachable ? toOwnUrl({ host, port }) : null);
}

/** Returns the channels of the environment. The terminal is always one of them. */
function toChannelConfigs({
  webhook,
  slack,
}: Pick<Config["channels"], "webhook" | "slack">): ChannelConfig[] {
  return [
    { kind: "terminal", name: "terminal" },
    ...(webhook === null
      ? []
      : [{ kind: "webhook" as const, name: "webhook", url: webhook.url, secrets: [webhook.secret] }]),
    ...(slack === null ? [] : [{ kind: "slack" as const, name: "slack", url: slack.url }]),
  ];
}
