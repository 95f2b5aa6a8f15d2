import path from "node:path";
import { z } from "zod";
import { createSecret } from "#lib/secret.ts";
import { PROCESS_ROLES } from "#model/kinds.ts";
import { settleRetention } from "#people/rules/retention.ts";
import {
  type About,
  accessKey,
  bucketUrl,
  certificates,
  channelName,
  databaseUrl,
  edgeUrl,
  flag,
  folder,
  hostName,
  hotDays,
  httpUrl,
  keptDays,
  logLevel,
  networks,
  optional,
  pseudonymKey,
  publicUrl,
  redisUrl,
  region,
  roles,
  score,
  secret,
  signingSecret,
  standard,
  text,
  whole,
  zones,
} from "./setting-kinds.ts";

/** Every setting: its place in the configuration, its variable, and its rule. This is the only place of a setting. */
const shape = z.object({
  edge: z.object({
    url: optional("EDGE_API_URL", edgeUrl, {
      description:
        "the platform's address; if unset, the built-in emulator replaces the platform, unless the configuration file has accounts (docs/scaling.md)",
      needs: ["EDGE_API_KEY", "EDGE_SHIELD_ZONES"],
    }),
    key: secret("EDGE_API_KEY", text("an access key"), {
      description: "the platform's access key",
      needs: ["EDGE_API_URL"],
    }),
    zones: optional("EDGE_SHIELD_ZONES", zones, {
      description: "the shield zones to copy",
      needs: ["EDGE_API_URL"],
    }),
    requestsPerSecond: standard("EDGE_REQUESTS_PER_SECOND", "10", whole(1, 1_000), {
      description:
        "the most requests to the platform per second, for all replicas together; 1000 for the built-in emulator",
    }),
  }),
  databaseUrl: secret("DATABASE_URL", databaseUrl, {
    description:
      "Postgres 15 or newer; if unset, the embedded Postgres; TLS with sslmode=verify-full and sslrootcert (SECURITY.md)",
  }),
  redisUrl: secret("REDIS_URL", redisUrl, {
    description: "Redis or Valkey for the job queues; if unset, the queues are in Postgres",
  }),
  redisCa: optional("LONGWATCH_REDIS_CA", certificates, {
    description:
      "the authority of a rediss:// server's certificate; if unset, the authorities that Node knows",
    needs: ["REDIS_URL"],
  }),
  dataDir: standard("LONGWATCH_DATA_DIR", ".longwatch", folder, {
    description: "folder for local state: the embedded Postgres, the emulator's history",
  }),
  archive: z.object({
    folder: optional("LONGWATCH_ARCHIVE_DIR", folder, {
      description:
        "folder for the days that can no longer change, as Parquet files (docs/archive.md); by default archive in the data folder; with DATABASE_URL, days are archived only if this or LONGWATCH_ARCHIVE_URL is set; without a bucket, all replicas must share the folder",
    }),
    bucket: optional("LONGWATCH_ARCHIVE_URL", bucketUrl, {
      description:
        "bucket for the archive's files (docs/archive.md); LONGWATCH_ARCHIVE_DIR is then the cache of this process, which replicas need not share",
      needs: ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    }),
    cacheBytes: standard("LONGWATCH_ARCHIVE_CACHE_GB", "10", whole(1, 100_000, "GB"), {
      description:
        "the most that the cache holds, and the most that one search of the bucket's files may need",
    }),
    endpoint: optional("AWS_ENDPOINT_URL", edgeUrl, {
      description: "address of an S3-compatible server; if unset, https://s3.<region>.amazonaws.com",
    }),
    region: standard("AWS_REGION", "us-east-1", region, { description: "region of the bucket" }),
    accessKeyId: secret("AWS_ACCESS_KEY_ID", text("the id of an access key"), {
      description: "access key for the bucket",
    }),
    secretAccessKey: secret("AWS_SECRET_ACCESS_KEY", text("the secret of an access key"), {
      description: "secret of the access key for the bucket",
    }),
    sessionToken: secret("AWS_SESSION_TOKEN", text("a session token"), {
      description: "token of temporary credentials for the bucket",
    }),
    hotDays: standard("LONGWATCH_HOT_DAYS", "7", hotDays, {
      description:
        "how long Postgres keeps a day that is in the archive; all keeps every day in Postgres too",
    }),
  }),
  roles: standard("LONGWATCH_ROLES", PROCESS_ROLES.join(","), roles, {
    description: "what this process does; replicas may divide the roles",
  }),
  http: z.object({
    host: standard("LONGWATCH_HOST", "127.0.0.1", hostName, {
      description: "the address on which HTTP listens",
    }),
    port: standard("LONGWATCH_PORT", "8080", whole(0, 65_535), {
      description: "the port on which HTTP listens; 0 takes a free port",
    }),
    queryTimeoutMs: standard("LONGWATCH_QUERY_TIMEOUT_SECONDS", "20", whole(1, 600, "seconds"), {
      description: "the longest time that one archive query may use the database; then the query is refused",
    }),
    queryConnections: standard("LONGWATCH_QUERY_CONNECTIONS", "6", whole(1, 100), {
      description:
        "the most archive queries that run in the database at once, per process; a third of so many long searches and parts of exports run at once, and half of so many quick requests",
    }),
    queryMaxRows: standard("LONGWATCH_QUERY_MAX_ROWS", "50000000", whole(1_000, 1e12), {
      description: "the most events that a search may read; a larger search is refused before it runs",
    }),
    keyRequestsPerMinute: standard("LONGWATCH_KEY_REQUESTS_PER_MINUTE", "600", whole(1, 1_000_000), {
      description: "the most requests of one key in a minute, per process",
    }),
    keyCpuMsPerMinute: standard("LONGWATCH_KEY_CPU_SECONDS", "30", whole(1, 6_000, "seconds"), {
      description:
        "the CPU time that the searches, lists and exports of one key may use in a minute, per process; then the key must wait",
    }),
    addressRequestsPerMinute: standard("LONGWATCH_ADDRESS_REQUESTS_PER_MINUTE", "1800", whole(1, 1_000_000), {
      description: "the most requests from one IPv4 address or IPv6 /64 in a minute, per process",
    }),
    trustedProxies: optional("LONGWATCH_TRUST_PROXY", networks, {
      description: "the proxies in front, whose X-Forwarded-For is accepted; if unset, the header is ignored",
    }),
    adminKey: secret("LONGWATCH_ADMIN_KEY", accessKey, {
      description:
        "an admin key for this service's own API; if unset, the first start makes a key and prints it once",
    }),
    areMetricsPublic: standard("LONGWATCH_METRICS_PUBLIC", "false", flag, {
      description:
        "answers /metrics without a key; otherwise /metrics needs a key for every zone with the role reader",
    }),
    publicUrl: optional("LONGWATCH_PUBLIC_URL", publicUrl, {
      description:
        "the address under which people reach this service; alert messages link to it (if unset, to LONGWATCH_HOST if other machines can reach that address), sign-in links begin with it, and an issuer sends people back to it (docs/sign-in.md); browsers may use its host name beside addresses, localhost and names without a dot",
    }),
  }),
  remote: z.object({
    url: optional("LONGWATCH_URL", publicUrl, {
      description:
        "commands: the address of a service elsewhere that answers instead of the database; behind a proxy it may have a path",
    }),
    isPlainAllowed: standard("LONGWATCH_PLAIN_HTTP", "false", flag, {
      description:
        "commands: whether LONGWATCH_URL may be plain http to another machine, which sends the key and the events readably",
    }),
    key: secret("LONGWATCH_KEY", text("1 to 512 characters", z.string().min(1).max(512)), {
      description: "commands: the key for the service at LONGWATCH_URL",
    }),
  }),
  logLevel: standard("LONGWATCH_LOG_LEVEL", "info", logLevel, {
    description: "the lowest level that is logged",
  }),
  lastProofMs: standard("LONGWATCH_LAST_PROOF_HOURS", "66", whole(2, 71, "hours"), {
    description:
      "the age of an hour whose comparison with the platform's counts is entered into the evidence as the last; at 72 hours the platform deletes the hour",
  }),
  spikeZ: standard("LONGWATCH_SPIKE_Z", "3.5", score, {
    description: "the score from which a rule's count is a spike; a higher value raises fewer alerts",
  }),
  advicePerHour: standard("LONGWATCH_ADVICE_PER_HOUR", "30", whole(0, 1_000), {
    description: "the most AI recommendations that are requested in an hour; 0 requests none",
  }),
  adviceOnRequest: standard("LONGWATCH_ADVICE_ON_REQUEST", "true", flag, {
    description:
      "allows keys with the role operator to make Longwatch request a recommendation that is not stored, within LONGWATCH_ADVICE_PER_HOUR",
  }),
  retention: z.object({
    eventDays: standard("LONGWATCH_RETENTION_DAYS", "400", keptDays, {
      description: "how long events are kept; never shorter than on the platform",
    }),
    rawDays: standard("LONGWATCH_RAW_DAYS", "90", keptDays, {
      description: "how long records are kept as received; never longer than full addresses or events",
    }),
    ipDays: standard("LONGWATCH_IP_DAYS", "90", keptDays, {
      description: "how long full IP addresses are kept; older ones become pseudonyms (docs/privacy.md)",
    }),
    rollUpDays: standard("LONGWATCH_ROLL_UP_DAYS", "800", keptDays, {
      description: "how long counts, spikes and alerts are kept; never shorter than events",
    }),
  }),
  pseudonymKey: secret("LONGWATCH_PSEUDONYM_KEY", pseudonymKey, {
    description:
      "makes pseudonyms and tombstones; must be the same for every process; if unset, a file in LONGWATCH_KEY_DIR",
  }),
  keyDir: optional("LONGWATCH_KEY_DIR", folder, {
    description:
      "the folder in which the first start makes the pseudonym key; must last as long as the database; by default the data folder",
  }),
  file: optional(
    "LONGWATCH_CONFIG",
    { ...folder, rule: "a YAML file" },
    {
      description:
        "channels, routes, quiet hours and detection (docs/routing.md) and the issuer at which people sign in (docs/sign-in.md), read again on SIGHUP; accounts, the words of actions, the schedule and the destinations of forward, read at the start",
    },
  ),
  platformVendor: optional("LONGWATCH_PLATFORM_VENDOR", text("at most 200 characters", z.string().max(200)), {
    description: "name of the platform's vendor in OCSF objects (docs/ocsf.md); if unset, they name none",
  }),
  channels: z.object({
    webhookUrl: secret("LONGWATCH_WEBHOOK_URL", httpUrl, {
      description: "where the webhook channel posts alerts",
      needs: ["LONGWATCH_WEBHOOK_SECRET"],
      isPosted: true,
    }),
    webhookSecret: secret("LONGWATCH_WEBHOOK_SECRET", signingSecret, {
      description: "signs what the webhook channel posts (Standard Webhooks)",
      needs: ["LONGWATCH_WEBHOOK_URL"],
    }),
    slackUrl: secret("LONGWATCH_SLACK_WEBHOOK_URL", httpUrl, {
      description: "a Slack incoming webhook for alerts",
      isPosted: true,
    }),
    allowPrivate: standard("LONGWATCH_ALLOW_PRIVATE_WEBHOOKS", "false", flag, {
      description: "allows channels and the heartbeat to post to private and loopback addresses",
    }),
  }),
  heartbeatUrl: secret("LONGWATCH_HEARTBEAT_URL", httpUrl, {
    description:
      "an external monitor (dead man's switch); Longwatch posts to it every minute while every zone is polled",
    isPosted: true,
  }),
  fallback: z.object({
    channel: optional("LONGWATCH_FALLBACK_CHANNEL", channelName, {
      description: "the channel that gets messages which another channel refused or did not accept in time",
    }),
    afterMs: standard("LONGWATCH_FALLBACK_MINUTES", "10", whole(1, 1_440, "minutes"), {
      description:
        "the time after which the fallback channel gets a message that its own channel did not accept",
    }),
  }),
});

/** The variables that are set. */
export type Given = Record<string, string>;

function leavesOf(schema: z.ZodType): readonly About[] {
  if (schema instanceof z.ZodObject)
    return Object.values(schema.shape as z.ZodRawShape).flatMap((one) => leavesOf(one as z.ZodType));
  return [schema.meta() as unknown as About];
}

export const SETTINGS: readonly About[] = leavesOf(shape);

/**
 * Returns the values of a part of the settings, and adds every mistake as variable, value and rule. The value of a wrong
 * variable is its default, so that the configuration file can be checked as well; a wrong secret is as given.
 */
function readValues(schema: z.ZodType, given: Given, mistakes: string[]): unknown {
  if (schema instanceof z.ZodObject) {
    const parts: [string, z.ZodType][] = Object.entries(schema.shape);
    return Object.fromEntries(parts.map(([key, part]) => [key, readValues(part, given, mistakes)]));
  }
  const { env, rule, secret: isSecret, fallback = null } = schema.meta() as unknown as About;
  const value = given[env];
  const read = schema.safeParse(value ?? fallback);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  // A message of its own replaces value and rule.
  const own = issue?.code === "custom" && issue.message !== "Invalid input" ? issue.message : null;
  mistakes.push(`${env}: ${own ?? `${isSecret === true ? "[secret]" : show(value)}: must be ${rule}`}`);
  return isSecret === true ? createSecret(value ?? "") : schema.parse(fallback);
}

export function show(value: string | undefined): string {
  return JSON.stringify(value?.replace(/\/\/[^/]*@/, "//[secret]@"));
}

/** Reads the settings of the environment. `mistakes` receives every mistake. */
export function readSettings(given: Given, mistakes: string[]) {
  const values = readValues(shape, given, mistakes) as z.output<typeof shape>;
  const { archive, channels, dataDir, fallback, remote } = values;
  const { webhookUrl, webhookSecret, slackUrl, allowPrivate } = channels;
  const none = createSecret("");
  return {
    ...values,
    edge: { ...values.edge, zones: values.edge.zones ?? [] },
    http: { ...values.http, trustedProxies: values.http.trustedProxies ?? [] },
    archive: {
      folder: archive.folder ?? path.join(dataDir, "archive"),
      /** Null means that the folder keeps the files. The bucket refuses a command that needs it and has no credentials. */
      bucket: archive.bucket && {
        ...archive.bucket,
        endpoint: archive.endpoint ?? `https://s3.${archive.region}.amazonaws.com`,
        region: archive.region,
        accessKeyId: archive.accessKeyId ?? none,
        secretAccessKey: archive.secretAccessKey ?? none,
        sessionToken: archive.sessionToken,
        cacheBytes: archive.cacheBytes,
      },
      /**
       * Whether days are archived: the folder or a bucket was chosen, or it is beside the embedded Postgres. Beside another
       * server the data folder may be lost with a container, or differ between replicas.
       */
      isWritten: archive.folder !== null || archive.bucket !== null || values.databaseUrl === null,
      hotDays: archive.hotDays,
      /** How long after its end a day of the emulated platform is archived. Null: as with the real platform. */
      archiveAfterMs: null as number | null,
    },
    remote: remote.url === null || remote.key === null ? null : { url: remote.url, key: remote.key },
    retention: settleRetention(values.retention),
    keyDir: values.keyDir ?? dataDir,
    channels: {
      webhook: webhookUrl && webhookSecret && { url: webhookUrl, secret: webhookSecret },
      slack: slackUrl && { url: slackUrl },
      allowPrivate,
    },
    fallback: fallback.channel === null ? null : { channel: fallback.channel, afterMs: fallback.afterMs },
  };
}
