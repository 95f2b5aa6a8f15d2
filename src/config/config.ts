import path from "node:path";
import type { ChannelConfig } from "#delivery/receivers/channels/registry.ts";
import { readPauses } from "#lib/cron.ts";
import { toError, UsageError } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";
import { closestName } from "#lib/text.ts";
import { findTightest, toSchedule } from "#model/schedule.ts";
import { DEFAULT_ACCOUNT, findOwner } from "#model/zones.ts";
import { checkAddress, findFolderMistake } from "./check-opening.ts";
import type { Account } from "./file/accounts-entry.ts";
import { type Alerting, defaultAlerting, readConfigFile } from "./file/config-file.ts";
import { findSecretFault, openSecretFile, type Reread, readSecretText } from "./secret-file.ts";
import { type Given, readSettings, SETTINGS, show } from "./settings.ts";

/** The settings, those of the environment and those of the configuration file. */
export interface Config extends ReturnType<typeof readSettings> {
  /** The address of the console for links in messages, without a slash at its end. Null means that none is known. */
  readonly consoleUrl: string | null;
  /** The longest time between two runs of the tick that polls. */
  readonly pollEveryMs: number;
  /** Every variable as it was given. */
  readonly settings: readonly Setting[];
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
/** The service elsewhere that commands ask instead of the database. */
export type RemoteService = NonNullable<Config["remote"]>;

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
  return SETTINGS.map(({ env, secret, rule, description, fallback = null }) => {
    return { variables: secret === true ? [env, `${env}_FILE`] : [env], rule, fallback, description };
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
  return SETTINGS.map(({ env: name, secret, fallback = null }) => {
    const isSet = [name, `${name}_FILE`].some((variable) => (env[variable] ?? "") !== "");
    const value = isSet ? (secret === true ? "[secret]" : (env[name] ?? null)) : fallback;
    return { name, value, isSet };
  });
}

type AccountsConfig = Pick<Config, "edge" | "alerting" | "rereadKey">;

/** Returns the accounts of the platform, that of the EDGE_ variables first; none if the emulator replaces the platform. */
export function accountsOf({ edge, alerting, rereadKey }: AccountsConfig): readonly Account[] {
  const { url, key, zones: zoneIds, requestsPerSecond } = edge;
  const first = { name: DEFAULT_ACCOUNT, key, zoneIds, requestsPerSecond, rereadKey };
  return [...(url === null || key === null ? [] : [{ ...first, url }]), ...alerting.accounts];
}

/** Returns the zones of every account. */
export function zonesOf({ edge, alerting }: Pick<Config, "edge" | "alerting">): readonly number[] {
  return [...edge.zones, ...alerting.accounts.flatMap(({ zoneIds }) => zoneIds)];
}

/** An account whose key is here. */
export type OpenAccount = Account & { readonly key: Secret };

/**
 * Returns the accounts for a command that calls the platform.
 * @throws {UsageError} naming the variables that are missing.
 */
export function requireAccounts(config: AccountsConfig): readonly [OpenAccount, ...OpenAccount[]] {
  const { url, key } = config.edge;
  const accounts = accountsOf(config);
  const mistakes: string[] = [];
  if (accounts.length === 0 && url === null)
    mistakes.push("EDGE_API_URL: not set: must be the platform's address");
  if (accounts.length === 0 && key === null)
    mistakes.push("EDGE_API_KEY or EDGE_API_KEY_FILE: not set: must be an access key");
  const open = accounts.flatMap((account) =>
    account.key === null ? [] : [{ ...account, key: account.key }],
  );
  for (const { name, key: own } of accounts)
    if (own === null) mistakes.push(`accounts.${name}: the key must be readable here`);
  const [first, ...others] = open;
  if (first === undefined || mistakes.length > 0) throw new UsageError(mistakes);
  return [first, ...others];
}

/**
 * Returns address and key for one call: those of the account, or of the zone's account.
 * @throws {UsageError} as `requireAccounts`, and for an account that there is not.
 */
export function requireEdge(
  config: AccountsConfig,
  { account, zoneId }: { readonly account?: string | undefined; readonly zoneId?: number | undefined } = {},
): { baseUrl: string; accessKey: Secret } {
  const accounts = requireAccounts(config);
  const names = accounts.map(({ name }) => name);
  const found =
    account === undefined ? findOwner(accounts, zoneId) : accounts.find(({ name }) => name === account);
  if (found === undefined)
    throw new UsageError([`--account ${show(account)} must be one of ${names.join(", ")}`]);
  return { baseUrl: found.url, accessKey: found.key };
}

function read(
  env: NodeJS.ProcessEnv,
  findMore: (given: Given, alerting: Alerting | null) => string[],
  areSecretsElsewhere = false,
): Config {
  const entries = Object.entries(env).filter(([, value]) => value !== undefined && value !== "");
  const given = Object.fromEntries(entries) as Given;
  const mistakes = [...findUnknown(given), ...readSecretFiles(given)];
  const settings = readSettings(given, mistakes);
  if ((given["LONGWATCH_URL"] === undefined) !== (given["LONGWATCH_KEY"] === undefined))
    mistakes.push("LONGWATCH_URL and LONGWATCH_KEY (or LONGWATCH_KEY_FILE) must be set together");
  if (isPlain(given["LONGWATCH_URL"]) && given["LONGWATCH_PLAIN_HTTP"] !== "true")
    mistakes.push(
      `LONGWATCH_URL: ${show(given["LONGWATCH_URL"])}: must be https, because http to another machine sends the key readably; LONGWATCH_PLAIN_HTTP=true or --plain-http allows it`,
    );
  const { http, file, fallback, spikeZ, edge } = settings;
  const consoleUrl = http.publicUrl ?? (isReachable(settings) ? toOwnUrl(http) : null);
  const channels = toChannelConfigs(settings.channels);
  const allowPrivateNetworks = settings.channels.allowPrivate;
  const options = {
    env,
    areSecretsElsewhere,
    publicUrl: consoleUrl,
    allowPrivateNetworks,
    channels,
    spikeZ,
    edge,
  };
  // The file is also read if the environment has mistakes, so that all mistakes are listed.
  const readAlerting = () => {
    const read =
      file === null
        ? { alerting: defaultAlerting(options), mistakes: [], channels: channels.map(({ name }) => name) }
        : readConfigFile(file, options);
    const unknown = checkFallback(fallback?.channel, read.channels);
    const alerting = unknown.length > 0 ? null : read.alerting;
    return { alerting, mistakes: [...findMore(given, alerting), ...read.mistakes, ...unknown] };
  };
  const first = readAlerting();
  mistakes.push(...first.mistakes);
  if (first.alerting === null || mistakes.length > 0) throw new UsageError(mistakes);
  const { alerting } = first;
  const rereadAlerting = () => {
    const again = readAlerting();
    if (again.alerting === null || again.mistakes.length > 0) throw new UsageError(again.mistakes);
    return again.alerting;
  };
  const { EDGE_API_KEY_FILE: keyFile } = given;
  const key = keyFile === undefined || edge.key === null ? null : openSecretFile(keyFile, edge.key.reveal());
  const polled = [{ ...edge, zoneIds: edge.zones }, ...alerting.accounts].map(
    ({ zoneIds, requestsPerSecond }) => ({ zones: zoneIds.length, requestsPerSecond }),
  );
  return Object.freeze({
    ...settings,
    edge: { ...edge, key: key?.secret ?? edge.key },
    pollEveryMs: readPauses(
      toSchedule(alerting.schedule, { isEmulated: false, ...findTightest(polled) })["poll-events"],
    ).longestMs,
    consoleUrl,
    settings: toSettings(env),
    alerting,
    rereadAlerting,
    rereadKey: key?.reread ?? (() => "same" as const),
  });
}

/** The address on which HTTP listens. */
export function toOwnUrl({ host, port }: { readonly host: string; readonly port: number | string }): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Hosts that name no machine, or the reader's own one. */
const LOCAL_HOST = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|::1?|0\.0\.0\.0)$/;

/** Returns whether this process listens for other machines at an address that they can use. */
function isReachable({ http: { host, port }, roles }: Pick<Config, "http" | "roles">): boolean {
  return roles.includes("http") && port !== 0 && !LOCAL_HOST.test(host);
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

const VARIABLES = SETTINGS.map(({ env }) => env);
const SECRETS = SETTINGS.flatMap(({ env, secret }) => (secret === true ? [env] : []));

/** Returns whether the address is plain HTTP to another machine than this one. */
function isPlain(url: string | undefined): boolean {
  const { protocol, hostname = "" } = URL.parse(url ?? "") ?? {};
  return protocol === "http:" && !/^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])\.?$/.test(hostname);
}

/** Checks at the start that the fallback channel exists, because it is otherwise used only when another channel fails. */
function checkFallback(name: string | undefined, known: readonly string[] | null): string[] {
  if (name === undefined || known === null || known.includes(name)) return [];
  const meant = closestName(name, known);
  const rule =
    known.length === 0
      ? "there is no channel"
      : `must be one of ${known.join(", ")}${meant === null ? "" : `: did you mean ${meant}?`}`;
  return [`LONGWATCH_FALLBACK_CHANNEL: ${show(name)}: is not a channel: ${rule}`];
}

/** Variables of earlier versions, and what replaces them. */
const RETIRED: Readonly<Record<string, string>> = {
  LONGWATCH_POLL_SECONDS:
    'the file that LONGWATCH_CONFIG names has schedule.poll-events, a cron expression: "*/30 * * * * *" polls every 30 seconds',
};

/** Returns a mistake for every unknown variable. Without it, a misspelt variable would silently have no effect. */
function findUnknown(given: Given): string[] {
  const known = [...VARIABLES, ...SECRETS.map((name) => `${name}_FILE`)];
  return Object.keys(given)
    .filter((name) => /^(LONGWATCH|EDGE)_/.test(name) && !known.includes(name))
    .map((name) => {
      if (name in RETIRED) return `${name}: is no longer a setting: ${RETIRED[name]}`;
      const meant = closestName(name, known);
      // Its value is not shown: it may be a secret under a wrong name.
      return `${name}: is not a setting${meant === null ? "" : `: did you mean ${meant}?`}`;
    });
}

function findServiceMistakes(given: Given, alerting: Alerting | null): string[] {
  const isPosted = (url: string) => /^https?:$/.test(URL.parse(url)?.protocol ?? "");
  const allowsPrivate = given["LONGWATCH_ALLOW_PRIVATE_WEBHOOKS"] === "true";
  const refused = SETTINGS.flatMap(({ env, isPosted: isChecked }) => {
    const { [env]: url = "" } = given;
    const mistakes = isChecked === true && isPosted(url) ? checkAddress(url, allowsPrivate) : [];
    return mistakes.map((mistake) => `${env}: [secret]: ${mistake}`);
  });
  const folder = given["LONGWATCH_ARCHIVE_DIR"];
  const unusable = folder === undefined ? null : findFolderMistake(path.resolve(folder));
  const archive = unusable === null ? [] : [`LONGWATCH_ARCHIVE_DIR: ${JSON.stringify(folder)}: ${unusable}`];
  if (given["LONGWATCH_PUBLIC_URL"] === undefined && alerting?.signIn != null)
    archive.push("LONGWATCH_PUBLIC_URL: not set: must be set if the configuration file has sign_in");
  return [...findIncomplete(given), ...refused, ...archive];
}

function findIncomplete(given: Given): string[] {
  const isSet = (name: string) => given[name] !== undefined || given[`${name}_FILE`] !== undefined;
  const missing = new Map<string, string>();
  for (const { env, needs = [] } of SETTINGS)
    for (const needed of isSet(env) ? needs : [])
      if (!isSet(needed) && !missing.has(needed)) missing.set(needed, env);
  return [...missing].map(([needed, name]) => `${needed}: not set: must be set when ${name} is`);
}

/** Fills in secrets that are given as a file, without the last line end. Returns the mistakes. */
function readSecretFiles(given: Record<string, string>): string[] {
  const mistakes: string[] = [];
  for (const name of SECRETS) {
    const file = given[`${name}_FILE`];
    if (file === undefined) continue;
    if (given[name] !== undefined) {
      mistakes.push(
        `${name}_FILE: ${JSON.stringify(file)}: must not be set together with ${name}: remove one of the two`,
      );
      continue;
    }
    try {
      const text = readSecretText(file);
      const fault = findSecretFault(text);
      if (fault === null) given[name] = text;
      else mistakes.push(`${name}_FILE: ${JSON.stringify(file)}: ${fault}`);
    } catch (thrown) {
      mistakes.push(
        `${name}_FILE: ${JSON.stringify(file)}: must be a readable file (${toError(thrown).message})`,
      );
    }
  }
  return mistakes;
}
