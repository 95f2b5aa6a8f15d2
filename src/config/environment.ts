import ipaddr from "ipaddr.js";
import { z } from "zod";
import { LOG_LEVELS } from "#lib/log.ts";
import { readKeyId } from "#model/access-key.ts";
import { PROCESS_ROLES } from "#model/kinds.ts";
import { readCertificates } from "./secret-file.ts";

/** Rule and description of a variable. The list of mistakes and the table of docs/configuration.md use the same words. */
interface About {
  /** Continues the sentence "must be". */
  readonly rule: string;
  readonly description: string;
  /** A secret is never shown, and can also be read from NAME_FILE. */
  readonly isSecret?: boolean;
  /** The default as typed. */
  readonly fallback?: string;
}

/** A link of a message has room for a path after it. */
const MAX_PUBLIC_URL_CHARS = 500;

function optional<Schema extends z.ZodType>(schema: Schema, about: About) {
  return schema.optional().meta({ ...about });
}

function withDefault<Schema extends z.ZodType<unknown, string>>(
  schema: Schema,
  fallback: string,
  about: About,
) {
  return schema.prefault(fallback as z.input<Schema>).meta({ ...about, fallback });
}

function urlWith(...protocols: readonly string[]) {
  return z.string().refine((text) => protocols.includes(URL.parse(text)?.protocol ?? ""));
}

/** Without user name and password, because addresses are logged. The key has its own variable. */
const edgeUrl = urlWith("http:", "https:").refine((text) => URL.parse(text)?.username === "");

const publicUrl = edgeUrl.refine((text) => {
  const url = URL.parse(text);
  return url !== null && url.search === "" && url.hash === "" && url.href.length <= MAX_PUBLIC_URL_CHARS;
});

function numberBetween(lowest: number, highest: number, pattern = /^\d+$/) {
  return z
    .string()
    .refine((text) => pattern.test(text) && Number(text) >= lowest && Number(text) <= highest)
    .transform(Number);
}

function listOf<Item extends string>(items: readonly Item[]) {
  return z
    .string()
    .transform((text) => [...new Set(text.split(",").map((part) => part.trim()))])
    .pipe(z.array(z.enum(items)));
}

const positiveInts = z
  .string()
  .regex(/^\s*[1-9]\d{0,15}(\s*,\s*[1-9]\d{0,15})*\s*$/)
  .transform((text) => [...new Set(text.split(",").map(Number))])
  .refine((numbers) => numbers.every(Number.isSafeInteger));

/** Names as S3 has them; no key of a prefix needs more characters. */
const bucketUrl = z
  .string()
  .regex(/^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[\w.=-]+)*\/?$/)
  .transform((text) => {
    const [name = "", ...prefix] = text.slice("s3://".length).replace(/\/$/, "").split("/");
    return { name, prefix: prefix.join("/") };
  });

const networks = z
  .string()
  .transform((text) => text.split(",").map((part) => part.trim()))
  .refine((parts) => parts.every((part) => ipaddr.isValid(part) || ipaddr.isValidCIDR(part)));

/** Returns whether the text is a secret of Standard Webhooks. */
function isSigningSecret(text: string): boolean {
  const [, key] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const bytes = Buffer.from(key ?? "", "base64").length;
  return bytes >= 24 && bytes <= 64;
}

const certificates = z.string().transform((file, context) => {
  const text = readCertificates(file);
  if (text !== null) return text;
  context.addIssue({ code: "custom" });
  return z.NEVER;
});

/** Null: all. */
const hotDays = z
  .string()
  .refine((text) => text === "all" || (/^\d+$/.test(text) && Number(text) >= 4 && Number(text) <= 36_500))
  .transform((text) => (text === "all" ? null : Number(text)));
const flag = z.enum(["true", "false"]).transform((text) => text === "true");
const anyText = z.string();

/** Every environment variable there is. */
export const Environment = z.object({
  EDGE_API_URL: optional(edgeUrl, {
    rule: "an http or https URL without user name",
    description: "the platform's address; if unset, the built-in emulator replaces the platform",
  }),
  EDGE_API_KEY: optional(anyText, {
    rule: "an access key",
    description: "the platform's access key",
    isSecret: true,
  }),
  EDGE_SHIELD_ZONES: optional(positiveInts, {
    rule: "whole numbers above 0, separated by commas",
    description: "the shield zones to copy",
  }),
  EDGE_REQUESTS_PER_SECOND: withDefault(numberBetween(1, 1_000), "10", {
    rule: "a whole number from 1 to 1000",
    description:
      "the most requests to the platform per second, for all replicas together; 1000 for the built-in emulator",
  }),
  DATABASE_URL: optional(urlWith("postgres:", "postgresql:"), {
    rule: "a postgres:// URL",
    description:
      "Postgres 15 or newer; if unset, the embedded Postgres; TLS with sslmode=verify-full and sslrootcert (SECURITY.md)",
    isSecret: true,
  }),
  REDIS_URL: optional(urlWith("redis:", "rediss:"), {
    rule: "a redis:// or rediss:// URL",
    description: "Redis or Valkey for the job queues; if unset, the queues are in Postgres",
    isSecret: true,
  }),
  LONGWATCH_REDIS_CA: optional(certificates, {
    rule: "a file of certificates in PEM",
    description:
      "the authority of a rediss:// server's certificate; if unset, the authorities that Node knows",
  }),
  LONGWATCH_DATA_DIR: withDefault(anyText, ".longwatch", {
    rule: "a folder",
    description: "folder for local state: the embedded Postgres, the emulator's history",
  }),
  LONGWATCH_ARCHIVE_DIR: optional(anyText, {
    rule: "a folder",
    description:
      "folder for the days that can no longer change, as Parquet files (docs/archive.md); by default archive in the data folder; with DATABASE_URL, days are archived only if this or LONGWATCH_ARCHIVE_URL is set; without a bucket, all replicas must share the folder",
  }),
  LONGWATCH_ARCHIVE_URL: optional(bucketUrl, {
    rule: "s3://, the name of a bucket, and a prefix of letters, digits and . _ = - between slashes, if any",
    description:
      "bucket for the archive's files (docs/archive.md); LONGWATCH_ARCHIVE_DIR is then the cache of this process, which replicas need not share",
  }),
  LONGWATCH_ARCHIVE_CACHE_GB: withDefault(numberBetween(1, 100_000), "10", {
    rule: "a whole number of GB from 1 to 100000",
    description: "the most that the cache holds, and the most that one search of the bucket's files may need",
  }),
  AWS_ENDPOINT_URL: optional(edgeUrl, {
    rule: "an http or https URL without user name",
    description: "address of an S3-compatible server; if unset, https://s3.<region>.amazonaws.com",
  }),
  AWS_REGION: withDefault(z.string().regex(/^[a-z0-9-]{1,40}$/), "us-east-1", {
    rule: "the name of a region",
    description: "region of the bucket",
  }),
  AWS_ACCESS_KEY_ID: optional(anyText, {
    rule: "the id of an access key",
    description: "access key for the bucket",
    isSecret: true,
  }),
  AWS_SECRET_ACCESS_KEY: optional(anyText, {
    rule: "the secret of an access key",
    description: "secret of the access key for the bucket",
    isSecret: true,
  }),
  AWS_SESSION_TOKEN: optional(anyText, {
    rule: "a session token",
    description: "token of temporary credentials for the bucket",
    isSecret: true,
  }),
  LONGWATCH_HOT_DAYS: withDefault(hotDays, "7", {
    rule: "a whole number of days from 4 to 36500, or all",
    description: "how long Postgres keeps a day that is in the archive; all keeps every day in Postgres too",
  }),
  LONGWATCH_ROLES: withDefault(listOf(PROCESS_ROLES), PROCESS_ROLES.join(","), {
    rule: `a comma separated list of ${PROCESS_ROLES.join(", ")}`,
    description: "what this process does; replicas may divide the roles",
  }),
  LONGWATCH_HOST: withDefault(z.string().regex(/^[\w.:-]+$/), "127.0.0.1", {
    rule: "an address or host name without port",
    description: "the address on which HTTP listens",
  }),
  LONGWATCH_PORT: withDefault(numberBetween(0, 65_535), "8080", {
    rule: "a whole number from 0 to 65535",
    description: "the port on which HTTP listens; 0 takes a free port",
  }),
  LONGWATCH_QUERY_TIMEOUT_SECONDS: withDefault(numberBetween(1, 600), "20", {
    rule: "a whole number of seconds from 1 to 600",
    description: "the longest time that one archive query may use the database; then the query is refused",
  }),
  LONGWATCH_QUERY_CONNECTIONS: withDefault(numberBetween(1, 100), "6", {
    rule: "a whole number from 1 to 100",
    description:
      "the most archive queries that run in the database at once, per process; a third of so many long searches and parts of exports run at once, and half of so many quick requests",
  }),
  LONGWATCH_QUERY_MAX_ROWS: withDefault(numberBetween(1_000, 1e12), "50000000", {
    rule: "a whole number from 1000 to 1000000000000",
    description: "the most events that a search may read; a larger search is refused before it runs",
  }),
  LONGWATCH_KEY_REQUESTS_PER_MINUTE: withDefault(numberBetween(1, 1_000_000), "600", {
    rule: "a whole number from 1 to 1000000",
    description: "the most requests of one key in a minute, per process",
  }),
  LONGWATCH_KEY_CPU_SECONDS: withDefault(numberBetween(1, 6_000), "30", {
    rule: "a whole number of seconds from 1 to 6000",
    description:
      "the CPU time that the searches, lists and exports of one key may use in a minute, per process; then the key must wait",
  }),
  LONGWATCH_ADDRESS_REQUESTS_PER_MINUTE: withDefault(numberBetween(1, 1_000_000), "1800", {
    rule: "a whole number from 1 to 1000000",
    description: "the most requests from one IPv4 address or IPv6 /64 in a minute, per process",
  }),
  LONGWATCH_TRUST_PROXY: optional(networks, {
    rule: "addresses or networks (10.0.0.0/8), separated by commas",
    description: "the proxies in front, whose X-Forwarded-For is accepted; if unset, the header is ignored",
  }),
  LONGWATCH_ADMIN_KEY: optional(
    z.string().refine((text) => readKeyId(text) !== null),
    {
      rule: "lw_, 8 to 32 lower-case letters or digits, _, and 32 to 128 letters or digits",
      description:
        "an admin key for this service's own API; if unset, the first start makes a key and prints it once",
      isSecret: true,
    },
  ),
  LONGWATCH_METRICS_PUBLIC: withDefault(flag, "false", {
    rule: "true or false",
    description:
      "answers /metrics without a key; otherwise /metrics needs a key for every zone with the role reader",
  }),
  LONGWATCH_URL: optional(publicUrl, {
    rule: "an http or https URL without user name, query and fragment",
    description:
      "commands: the address of a service elsewhere that answers instead of the database; behind a proxy it may have a path",
  }),
  LONGWATCH_PLAIN_HTTP: withDefault(flag, "false", {
    rule: "true or false",
    description:
      "commands: whether LONGWATCH_URL may be plain http to another machine, which sends the key and the events readably",
  }),
  LONGWATCH_KEY: optional(z.string().min(1).max(512), {
    rule: "1 to 512 characters",
    description: "commands: the key for the service at LONGWATCH_URL",
    isSecret: true,
  }),
  LONGWATCH_PUBLIC_URL: optional(publicUrl, {
    rule: "an http or https URL without user name, query and fragment",
    description:
      "the address under which people reach this service; alert messages link to it (if unset, to LONGWATCH_HOST if other machines can reach that address), sign-in links begin with it, and an issuer sends people back to it (docs/sign-in.md); browsers may use its host name beside addresses, localhost and names without a dot",
  }),
  LONGWATCH_LOG_LEVEL: withDefault(z.enum(LOG_LEVELS), "info", {
    rule: `one of ${LOG_LEVELS.join(", ")}`,
    description: "the lowest level that is logged",
  }),
  LONGWATCH_LAST_PROOF_HOURS: withDefault(numberBetween(2, 71), "66", {
    rule: "a whole number of hours from 2 to 71",
    description:
      "the age of an hour whose comparison with the platform's counts is entered into the evidence as the last; at 72 hours the platform deletes the hour",
  }),
  LONGWATCH_SPIKE_Z: withDefault(numberBetween(1, 10, /^\d+(\.\d+)?$/), "3.5", {
    rule: "a number from 1 to 10",
    description: "the score from which a rule's count is a spike; a higher value raises fewer alerts",
  }),
  LONGWATCH_ADVICE_PER_HOUR: withDefault(numberBetween(0, 1_000), "30", {
    rule: "a whole number from 0 to 1000",
    description: "the most AI recommendations that are requested in an hour; 0 requests none",
  }),
  LONGWATCH_ADVICE_ON_REQUEST: withDefault(flag, "true", {
    rule: "true or false",
    description:
      "allows keys with the role operator to make Longwatch request a recommendation that is not stored, within LONGWATCH_ADVICE_PER_HOUR",
  }),
  LONGWATCH_RETENTION_DAYS: withDefault(numberBetween(4, 36_500), "400", {
    rule: "a whole number of days from 4 to 36500",
    description: "how long events are kept; never shorter than on the platform",
  }),
  LONGWATCH_RAW_DAYS: withDefault(numberBetween(4, 36_500), "90", {
    rule: "a whole number of days from 4 to 36500",
    description: "how long records are kept as received; never longer than full addresses or events",
  }),
  LONGWATCH_IP_DAYS: withDefault(numberBetween(4, 36_500), "90", {
    rule: "a whole number of days from 4 to 36500",
    description: "how long full IP addresses are kept; older ones become pseudonyms (docs/privacy.md)",
  }),
  LONGWATCH_ROLL_UP_DAYS: withDefault(numberBetween(4, 36_500), "800", {
    rule: "a whole number of days from 4 to 36500",
    description: "how long counts, spikes and alerts are kept; never shorter than events",
  }),
  LONGWATCH_PSEUDONYM_KEY: optional(z.string().regex(/^\S{32,1024}$/), {
    rule: "32 to 1024 random characters without blanks",
    description:
      "makes pseudonyms and tombstones; must be the same for every process; if unset, a file in LONGWATCH_KEY_DIR",
    isSecret: true,
  }),
  LONGWATCH_KEY_DIR: optional(anyText, {
    rule: "a folder",
    description:
      "the folder in which the first start makes the pseudonym key; must last as long as the database; by default the data folder",
  }),
  LONGWATCH_CONFIG: optional(anyText, {
    rule: "a YAML file",
    description:
      "channels, routes, quiet hours and detection (docs/routing.md) and the issuer at which people sign in (docs/sign-in.md), read again on SIGHUP; the words of actions, the schedule and the destinations of forward, read at the start",
  }),
  LONGWATCH_PLATFORM_VENDOR: optional(z.string().max(200), {
    rule: "at most 200 characters",
    description: "name of the platform's vendor in OCSF objects (docs/ocsf.md); if unset, they name none",
  }),
  LONGWATCH_WEBHOOK_URL: optional(urlWith("http:", "https:"), {
    rule: "an http or https URL",
    description: "where the webhook channel posts alerts",
    isSecret: true,
  }),
  LONGWATCH_WEBHOOK_SECRET: optional(z.string().refine(isSigningSecret), {
    rule: "whsec_ followed by 24 to 64 bytes in base64",
    description: "signs what the webhook channel posts (Standard Webhooks)",
    isSecret: true,
  }),
  LONGWATCH_SLACK_WEBHOOK_URL: optional(urlWith("http:", "https:"), {
    rule: "an http or https URL",
    description: "a Slack incoming webhook for alerts",
    isSecret: true,
  }),
  LONGWATCH_HEARTBEAT_URL: optional(urlWith("http:", "https:"), {
    rule: "an http or https URL",
    description:
      "an external monitor (dead man's switch); Longwatch posts to it every minute while every zone is polled",
    isSecret: true,
  }),
  LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: withDefault(flag, "false", {
    rule: "true or false",
    description: "allows channels and the heartbeat to post to private and loopback addresses",
  }),
  LONGWATCH_FALLBACK_CHANNEL: optional(z.string().regex(/^[\w-]{1,64}$/), {
    rule: "the name of a channel",
    description: "the channel that gets messages which another channel refused or did not accept in time",
  }),
  LONGWATCH_FALLBACK_MINUTES: withDefault(numberBetween(1, 1_440), "10", {
    rule: "a whole number of minutes from 1 to 1440",
    description:
      "the time after which the fallback channel gets a message that its own channel did not accept",
  }),
});

type Variable = keyof typeof Environment.shape;
export const VARIABLES = Object.keys(Environment.shape) as Variable[];

export function aboutVariable(name: Variable): About {
  return Environment.shape[name].meta() as unknown as About;
}

export const SECRETS = VARIABLES.filter((name) => aboutVariable(name).isSecret === true);
