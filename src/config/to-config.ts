/** Turns the variables of the environment into settings. */
import path from "node:path";
import type { z } from "zod";
import { createSecret, type Secret } from "#lib/secret.ts";
import { settleRetention } from "#people/rules/retention.ts";
import type { Config, RemoteService } from "./config.ts";
import { Environment } from "./environment.ts";

/** Without a slash at its end: paths are added to it. */
export function toPublicUrl(given: string | undefined): string | null {
  return given?.replace(/\/+$/, "") ?? null;
}

function toRemote(given: string | undefined, key: Secret | null): RemoteService | null {
  const url = toPublicUrl(given);
  return url === null || key === null ? null : { url, key };
}

const secret = (text: string | undefined) => (text === undefined ? null : createSecret(text));

export function toEnvironmentChannels(
  given: Readonly<Record<string, unknown>>,
): Pick<Config["channels"], "webhook" | "slack"> {
  const read = (name: string) => secret(given[name] as string | undefined);
  const url = read("LONGWATCH_WEBHOOK_URL");
  const signing = read("LONGWATCH_WEBHOOK_SECRET");
  const slackUrl = read("LONGWATCH_SLACK_WEBHOOK_URL");
  return {
    webhook: url === null || signing === null ? null : { url, secret: signing },
    slack: slackUrl === null ? null : { url: slackUrl },
  };
}

/** A command without credentials that needs the bucket is refused by the bucket. */
function toBucket(value: z.output<typeof Environment>): Config["archive"]["bucket"] {
  if (value.LONGWATCH_ARCHIVE_URL === undefined) return null;
  return {
    ...value.LONGWATCH_ARCHIVE_URL,
    endpoint: value.AWS_ENDPOINT_URL ?? `https://s3.${value.AWS_REGION}.amazonaws.com`,
    region: value.AWS_REGION,
    accessKeyId: createSecret(value.AWS_ACCESS_KEY_ID ?? ""),
    secretAccessKey: createSecret(value.AWS_SECRET_ACCESS_KEY ?? ""),
    sessionToken: secret(value.AWS_SESSION_TOKEN),
    cacheBytes: value.LONGWATCH_ARCHIVE_CACHE_GB * 1e9,
  };
}

export function toConfig(
  value: z.output<typeof Environment>,
): Omit<Config, "alerting" | "consoleUrl" | "pollEveryMs" | "rereadAlerting" | "rereadKey" | "settings"> {
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
    archive: {
      folder: path.resolve(value.LONGWATCH_ARCHIVE_DIR ?? path.join(value.LONGWATCH_DATA_DIR, "archive")),
      bucket: toBucket(value),
      isWritten:
        value.LONGWATCH_ARCHIVE_DIR !== undefined ||
        value.LONGWATCH_ARCHIVE_URL !== undefined ||
        value.DATABASE_URL === undefined,
      hotDays: value.LONGWATCH_HOT_DAYS,
      archiveAfterMs: null,
    },
    roles: value.LONGWATCH_ROLES,
    http: {
      host: value.LONGWATCH_HOST,
      port: value.LONGWATCH_PORT,
      queryTimeoutMs: value.LONGWATCH_QUERY_TIMEOUT_SECONDS * 1_000,
      queryConnections: value.LONGWATCH_QUERY_CONNECTIONS,
      queryMaxRows: value.LONGWATCH_QUERY_MAX_ROWS,
      keyRequestsPerMinute: value.LONGWATCH_KEY_REQUESTS_PER_MINUTE,
      keyCpuMsPerMinute: value.LONGWATCH_KEY_CPU_SECONDS * 1_000,
      addressRequestsPerMinute: value.LONGWATCH_ADDRESS_REQUESTS_PER_MINUTE,
      trustedProxies: value.LONGWATCH_TRUST_PROXY ?? [],
      adminKey: secret(value.LONGWATCH_ADMIN_KEY),
      areMetricsPublic: value.LONGWATCH_METRICS_PUBLIC,
      publicUrl: toPublicUrl(value.LONGWATCH_PUBLIC_URL),
    },
    remote: toRemote(value.LONGWATCH_URL, secret(value.LONGWATCH_KEY)),
    logLevel: value.LONGWATCH_LOG_LEVEL,
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
    file: value.LONGWATCH_CONFIG === undefined ? null : path.resolve(value.LONGWATCH_CONFIG),
    channels: {
      ...toEnvironmentChannels(value),
      allowPrivate: value.LONGWATCH_ALLOW_PRIVATE_WEBHOOKS,
    },
    platformVendor: value.LONGWATCH_PLATFORM_VENDOR ?? null,
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
