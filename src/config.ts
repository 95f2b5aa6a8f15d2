import path from "node:path";
import type { z } from "zod";
import type { ChannelConfig } from "./channel/channel-config.ts";
import { closestName } from "./closest-name.ts";
import { type Alerting, defaultAlerting, readConfigFile } from "./config-file.ts";
import { aboutVariable, Environment, type ROLES, SECRETS, VARIABLES } from "./environment.ts";
import { UsageError } from "./errors.ts";
import { type Retention, settleRetention } from "./privacy/retention.ts";
import { readDatabaseUrl } from "./read-database-url.ts";
import { readSecretFiles } from "./read-secret-files.ts";
import { createSecret, type Secret } from "./secret.ts";

type Role = (typeof ROLES)[number];

export interface Config {
  readonly edge: {
    readonly url: string | null;
    readonly key: Secret | null;
    readonly zones: readonly number[];
    /** Of all replicas together. */
    readonly requestsPerSecond: number;
  };
  /** Null: the embedded Postgres in `dataDir`. */
  readonly databaseUrl: Secret | null;
  /** Null: the queues live in Postgres. */
  readonly redisUrl: Secret | null;
  /** PEM; null: whom Node trusts. */
  readonly redisCa: string | null;
  /** Absolute. */
  readonly dataDir: string;
  readonly roles: readonly Role[];
  readonly http: {
    readonly host: string;
    readonly port: number;
    readonly queryTimeoutMs: number;
    readonly queryConnections: number;
    readonly queryMaxRows: number;
    readonly keyRequestsPerMinute: number;
    readonly addressRequestsPerMinute: number;
    readonly trustedProxies: readonly string[];
    /** Null: the first start makes one. */
    readonly adminKey: Secret | null;
    readonly areMetricsPublic: boolean;
  };
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly pollEveryMs: number;
  /** The age of a sealed hour at which its last comparison is entered into its evidence. */
  readonly lastProofMs: number;
  readonly spikeZ: number;
  readonly advicePerHour: number;
  readonly adviceOnRequest: boolean;
  readonly retention: Retention;
  /** Null: in a file of `keyDir`. */
  readonly pseudonymKey: Secret | null;
  /** Absolute. */
  readonly keyDir: string;
  readonly channels: {
    readonly webhook: { readonly url: Secret; readonly secret: Secret } | null;
    readonly slack: { readonly url: Secret } | null;
    readonly allowPrivate: boolean;
  };
  /** Where a sign of life goes every minute; a secret as a whole. */
  readonly heartbeatUrl: Secret | null;
  /** Null: what a channel does not take waits for it alone. */
  readonly fallback: { readonly channel: string; readonly afterMs: number } | null;
  /** Whether LONGWATCH_CONFIG names a file. */
  readonly hasFile: boolean;
  /** From the file that LONGWATCH_CONFIG names, or what holds without one. */
  readonly alerting: Alerting;
  /**
   * The same, read anew.
   * @throws {UsageError} listing every mistake.
   */
  readonly rereadAlerting: () => Alerting;
}

type Given = Record<string, string>;

/**
 * The only reader of the environment. Empty variables count as unset.
 * @throws {UsageError} listing every mistake at once as variable, value and rule; a secret's value is never shown.
 */
export function parseConfig(env: NodeJS.ProcessEnv): Config {
  return read(env, () => []);
}

/** The same for the service itself, which also needs that what is set goes together. */
export function parseServiceConfig(env: NodeJS.ProcessEnv): Config {
  return read(env, findIncomplete);
}

/** Every variable in the words of its mistakes; a secret comes with its NAME_FILE. `fallback` as one would type it. */
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
  /** As one would type it; null where there is none, `[secret]` in place of a secret. */
  readonly value: string | null;
  /** By the environment, itself or as NAME_FILE. */
  readonly isSet: boolean;
}

/**
 * Every variable with what holds here.
 * @throws {UsageError} as `parseConfig`.
 */
export function listSettings(env: NodeJS.ProcessEnv): readonly Setting[] {
  parseConfig(env);
  return VARIABLES.map((name) => {
    const { isSecret, fallback } = aboutVariable(name);
    const given = [name, `${name}_FILE`].some((variable) => (env[variable] ?? "") !== "");
    const value = given ? (isSecret === true ? "[secret]" : (env[name] ?? null)) : (fallback ?? null);
    return { name, value, isSet: given };
  });
}

/**
 * Address and key for a command that talks to the platform.
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

function read(env: NodeJS.ProcessEnv, findMore: (given: Given) => string[]): Config {
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
  mistakes.push(...findMore(given));
  if (!parsed.success) throw new UsageError([...mistakes, ...findFileMistakes(given, env)]);
  const rereadAlerting = createAlertingReader(parsed.data, env);
  let alerting: Alerting | null = null;
  try {
    alerting = rereadAlerting();
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    mistakes.push(...thrown.mistakes);
  }
  if (alerting === null || mistakes.length > 0) throw new UsageError(mistakes);
  return Object.freeze({ ...toConfig(parsed.data), alerting, rereadAlerting });
}

/** Those of the file, where the environment has others: a person wants to see all of them. */
function findFileMistakes({ LONGWATCH_CONFIG: file }: Given, env: NodeJS.ProcessEnv): readonly string[] {
  if (file === undefined) return [];
  try {
    readConfigFile(path.resolve(file), { env, allowPrivateNetworks: true, channels: [], spikeZ: 1 });
    return [];
  } catch (thrown) {
    if (thrown instanceof UsageError) return thrown.mistakes;
    throw thrown;
  }
}

/** Writes out what it means; returns the mistakes. That it is an address at all is found with the others. */
function settleDatabaseUrl(given: Given): string[] {
  const { DATABASE_URL: text = "" } = given;
  if (URL.parse(text) === null) return [];
  const read = readDatabaseUrl(text);
  if ("mistake" in read) return [`DATABASE_URL: ${read.mistake}`];
  given["DATABASE_URL"] = read.url;
  return [];
}

function createAlertingReader(value: z.output<typeof Environment>, env: NodeJS.ProcessEnv): () => Alerting {
  const { LONGWATCH_CONFIG: file, LONGWATCH_SPIKE_Z: spikeZ } = value;
  const { channels } = toConfig(value);
  const named = toChannelConfigs(channels);
  const { LONGWATCH_FALLBACK_CHANNEL: fallback } = value;
  if (file === undefined) return () => checkFallback(fallback, defaultAlerting({ channels: named, spikeZ }));
  const options = { env, allowPrivateNetworks: channels.allowPrivate, channels: named, spikeZ };
  return () => checkFallback(fallback, readConfigFile(path.resolve(file), options));
}

/** Nothing can stand in that does not exist; a page that is late must not be the first to find out. */
function checkFallback(name: string | undefined, alerting: Alerting): Alerting {
  const known = alerting.channels.map((channel) => channel.name);
  if (name === undefined || known.includes(name)) return alerting;
  const meant = closestName(name, known);
  const rule =
    known.length === 0
      ? "there is no channel"
      : `must be one of ${known.join(", ")}${meant === null ? "" : `: did you mean ${meant}?`}`;
  throw new UsageError([`LONGWATCH_FALLBACK_CHANNEL: ${show(name)}: is not a channel: ${rule}`]);
}

/** The channels of the environment; the terminal always is one. */
function toChannelConfigs({ webhook, slack }: Config["channels"]): ChannelConfig[] {
  return [
    { kind: "terminal", name: "terminal" },
    ...(webhook === null
      ? []
      : [{ kind: "webhook" as const, name: "webhook", url: webhook.url, secrets: [webhook.secret] }]),
    ...(slack === null ? [] : [{ kind: "slack" as const, name: "slack", url: slack.url }]),
  ];
}

function show(value: string | undefined): string {
  return JSON.stringify(value?.replace(/\/\/[^/]*@/, "//[secret]@"));
}

/** A misspelt variable would otherwise be a setting that silently does nothing. */
function findUnknown(given: Given): string[] {
  const known = [...VARIABLES, ...SECRETS.map((name) => `${name}_FILE`)];
  return Object.keys(given)
    .filter((name) => /^(LONGWATCH|EDGE)_/.test(name) && !known.includes(name))
    .map((name) => {
      const meant = closestName(name, known);
      // Its value is not shown: it may be a secret under a wrong name.
      return `${name}: is not a setting${meant === null ? "" : `: did you mean ${meant}?`}`;
    });
}

/** Variables of which one says nothing, or the wrong thing, without the other. */
const BELONGS_TO: readonly (readonly [string, string])[] = [
  ["EDGE_API_URL", "EDGE_API_KEY"],
  ["EDGE_API_URL", "EDGE_SHIELD_ZONES"],
  ["EDGE_API_KEY", "EDGE_API_URL"],
  ["EDGE_SHIELD_ZONES", "EDGE_API_URL"],
  ["LONGWATCH_REDIS_CA", "REDIS_URL"],
  ["LONGWATCH_WEBHOOK_URL", "LONGWATCH_WEBHOOK_SECRET"],
  ["LONGWATCH_WEBHOOK_SECRET", "LONGWATCH_WEBHOOK_URL"],
];

function findIncomplete(given: Given): string[] {
  const isSet = (name: string) => given[name] !== undefined || given[`${name}_FILE`] !== undefined;
  const missing = new Map<string, string>();
  for (const [name, needed] of BELONGS_TO) {
    if (isSet(name) && !isSet(needed) && !missing.has(needed)) missing.set(needed, name);
  }
  return [...missing].map(([needed, name]) => `${needed}: not set: must be set when ${name} is`);
}

function toConfig(value: z.output<typeof Environment>): Omit<Config, "alerting" | "rereadAlerting"> {
  const secret = (text: string | undefined) => (text === undefined ? null : createSecret(text));
  const webhook = {
    url: secret(value.LONGWATCH_WEBHOOK_URL),
    secret: secret(value.LONGWATCH_WEBHOOK_SECRET),
  };
  const slackUrl = secret(value.LONGWATCH_SLACK_WEBHOOK_URL);
  return {
    edge: {
      url: value.EDGE_API_URL ?? null,
      key: secret(value.EDGE_API_KEY),
      zones: value.EDGE_SHIELD_ZONES ?? [],
      requestsPerSecond: value.EDGE_REQUESTS_PER_SECOND,
    },
    databaseUrl: secret(value.DATABASE_URL),
    redisUrl: secret(value.REDIS_URL),
    redisCa: value.LONGWATCH_REDIS_CA ?? null,
    dataDir: path.resolve(value.LONGWATCH_DATA_DIR),
    roles: value.LONGWATCH_ROLES,
    http: {
      host: value.LONGWATCH_HOST,
      port: value.LONGWATCH_PORT,
      queryTimeoutMs: value.LONGWATCH_QUERY_TIMEOUT_SECONDS * 1_000,
      queryConnections: value.LONGWATCH_QUERY_CONNECTIONS,
      queryMaxRows: value.LONGWATCH_QUERY_MAX_ROWS,
      keyRequestsPerMinute: value.LONGWATCH_KEY_REQUESTS_PER_MINUTE,
      addressRequestsPerMinute: value.LONGWATCH_ADDRESS_REQUESTS_PER_MINUTE,
      trustedProxies: value.LONGWATCH_TRUST_PROXY ?? [],
      adminKey: secret(value.LONGWATCH_ADMIN_KEY),
      areMetricsPublic: value.LONGWATCH_METRICS_PUBLIC,
    },
    logLevel: value.LONGWATCH_LOG_LEVEL,
    pollEveryMs: value.LONGWATCH_POLL_SECONDS * 1_000,
    lastProofMs: value.LONGWATCH_LAST_PROOF_HOURS * 3_600_000,
    spikeZ: value.LONGWATCH_SPIKE_Z,
    advicePerHour: value.LONGWATCH_ADVICE_PER_HOUR,
    adviceOnRequest: value.LONGWATCH_ADVICE_ON_REQUEST,
    retention: settleRetention({
      rawDays: value.LONGWATCH_RAW_DAYS,
      ipDays: value.LONGWATCH_IP_DAYS,
      eventDays: value.LONGWATCH_RETENTION_DAYS,
      rollUpDays: value.LONGWATCH_ROLL_UP_DAYS,
    }),
    pseudonymKey: secret(value.LONGWATCH_PSEUDONYM_KEY),
    keyDir: path.resolve(value.LONGWATCH_KEY_DIR ?? value.LONGWATCH_DATA_DIR),
    hasFile: value.LONGWATCH_CONFIG !== undefined,
    channels: {
      webhook:
        webhook.url === null || webhook.secret === null ? null : { url: webhook.url, secret: webhook.secret },
      slack: slackUrl === null ? null : { url: slackUrl },
      allowPrivate: value.LONGWATCH_ALLOW_PRIVATE_WEBHOOKS,
    },
    heartbeatUrl: secret(value.LONGWATCH_HEARTBEAT_URL),
    fallback:
      value.LONGWATCH_FALLBACK_CHANNEL === undefined
        ? null
        : {
            channel: value.LONGWATCH_FALLBACK_CHANNEL,
            afterMs: value.LONGWATCH_FALLBACK_MINUTES * 60_000,
          },
  };
}
