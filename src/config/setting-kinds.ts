import path from "node:path";
import ipaddr from "ipaddr.js";
import { z } from "zod";
import { LOG_LEVELS, type LogLevel } from "#lib/log.ts";
import { readRedisUrl } from "#lib/redis-url.ts";
import { createSecret } from "#lib/secret.ts";
import { readKeyId } from "#model/access-key.ts";
import { PROCESS_ROLES, type ProcessRole } from "#model/kinds.ts";
import { readDatabaseUrl } from "./read-database-url.ts";
import { readCertificates } from "./secret-file.ts";

/** The kinds of settings. The list of mistakes and the table of docs/configuration.md use the same words. */
export interface About {
  /** The variable. */
  readonly env: string;
  /** Continues the sentence "must be". */
  readonly rule: string;
  readonly description: string;
  /** A secret is never shown, and can also be read from NAME_FILE. */
  readonly secret?: boolean;
  /** The default as typed. */
  readonly fallback?: string;
  /** Variables without which this one has no meaning, or a wrong one. */
  readonly needs?: readonly string[];
  /** Whether the service posts to this address. */
  readonly isPosted?: boolean;
}

/** Reads the text of a variable. The rule continues the sentence "must be". */
interface Kind<Value> {
  readonly schema: z.ZodType<Value, string>;
  readonly rule: string;
}

type Words = Pick<About, "description" | "secret" | "needs" | "isPosted">;

/** A setting that is null if its variable is not set. */
export function optional<Value>(env: string, { schema, rule }: Kind<Value>, words: Words) {
  return schema.nullable().meta({ env, rule, ...words });
}

export function secret(env: string, { schema, rule }: Kind<string>, words: Words) {
  return optional(env, { schema: schema.transform(createSecret), rule }, { ...words, secret: true });
}

export function standard<Value>(env: string, fallback: string, { schema, rule }: Kind<Value>, words: Words) {
  return schema.meta({ env, rule, fallback, ...words });
}

const UNITS = { days: 1, seconds: 1_000, minutes: 60_000, hours: 3_600_000, GB: 1e9 };

/** Times become milliseconds, days excepted; GB become bytes. */
export function whole(lowest: number, highest: number, unit?: keyof typeof UNITS): Kind<number> {
  const isRight = (text: string) => /^\d+$/.test(text) && Number(text) >= lowest && Number(text) <= highest;
  return {
    schema: z
      .string()
      .refine(isRight)
      .transform((text) => Number(text) * (unit === undefined ? 1 : UNITS[unit])),
    rule: `a whole number ${unit === undefined ? "" : `of ${unit} `}from ${lowest} to ${highest}`,
  };
}

export function text(rule: string, schema = z.string()): Kind<string> {
  return { schema, rule };
}

function urlWith(...protocols: readonly string[]) {
  return z.string().refine((url) => protocols.includes(URL.parse(url)?.protocol ?? ""));
}

/** The path becomes absolute. */
export const folder: Kind<string> = {
  rule: "a folder",
  schema: z.string().transform((given) => path.resolve(given)),
};
export const redisUrl = text(
  "a redis:// URL, redis+sentinel://host:port,host:port/name or redis+cluster://host:port,host:port; rediss for TLS",
  z.string().refine((given) => readRedisUrl(given) !== null),
);
export const httpUrl = text("an http or https URL", urlWith("http:", "https:"));
/** Without user name and password, because addresses are logged. The key has its own variable. */
export const edgeUrl = text(
  "an http or https URL without user name",
  urlWith("http:", "https:").refine((url) => URL.parse(url)?.username === ""),
);

/** A link of a message has room for a path after it. */
const MAX_PUBLIC_URL_CHARS = 500;
/** Without a slash at its end: paths are added to it. */
export const publicUrl: Kind<string> = {
  rule: "an http or https URL without user name, query and fragment",
  schema: edgeUrl.schema
    .refine((given) => {
      const url = URL.parse(given);
      return url !== null && url.search === "" && url.hash === "" && url.href.length <= MAX_PUBLIC_URL_CHARS;
    })
    .transform((url) => url.replace(/\/+$/, "")),
};

export const databaseUrl: Kind<string> = {
  rule: "a postgres:// URL",
  schema: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//)
    .transform((given, context) => {
      const read = readDatabaseUrl(given);
      if ("url" in read) return read.url;
      context.addIssue({ code: "custom", message: read.mistake });
      return z.NEVER;
    }),
};

export const certificates: Kind<string> = {
  rule: "a file of certificates in PEM",
  schema: z.string().transform((file, context) => {
    const read = readCertificates(file);
    if (read !== null) return read;
    context.addIssue({ code: "custom" });
    return z.NEVER;
  }),
};

export const zones: Kind<readonly number[]> = {
  rule: "whole numbers above 0, separated by commas",
  schema: z
    .string()
    .regex(/^\s*[1-9]\d{0,15}(\s*,\s*[1-9]\d{0,15})*\s*$/)
    .transform((given) => [...new Set(given.split(",").map(Number))])
    .refine((numbers) => numbers.every(Number.isSafeInteger)),
};

/** Names as S3 has them; no key of a prefix needs more characters. The prefix has no slashes at its ends. */
export const bucketUrl: Kind<{ readonly name: string; readonly prefix: string }> = {
  rule: "s3://, the name of a bucket, and a prefix of letters, digits and . _ = - between slashes, if any",
  schema: z
    .string()
    .regex(/^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[\w.=-]+)*\/?$/)
    .transform((url) => {
      const [name = "", ...prefix] = url.slice("s3://".length).replace(/\/$/, "").split("/");
      return { name, prefix: prefix.join("/") };
    }),
};

export const networks: Kind<readonly string[]> = {
  rule: "addresses or networks (10.0.0.0/8), separated by commas",
  schema: z
    .string()
    .transform((given) => given.split(",").map((part) => part.trim()))
    .refine((parts) => parts.every((part) => ipaddr.isValid(part) || ipaddr.isValidCIDR(part))),
};

export const signingSecret = text(
  "whsec_ followed by 24 to 64 bytes in base64",
  z.string().refine((given) => {
    const [, key] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(given) ?? [];
    const bytes = Buffer.from(key ?? "", "base64").length;
    return bytes >= 24 && bytes <= 64;
  }),
);

export const hostName = text("an address or host name without port", z.string().regex(/^[\w.:-]+$/));
export const region = text("the name of a region", z.string().regex(/^[a-z0-9-]{1,40}$/));
export const channelName = text("the name of a channel", z.string().regex(/^[\w-]{1,64}$/));
export const pseudonymKey = text(
  "32 to 1024 random characters without blanks",
  z.string().regex(/^\S{32,1024}$/),
);
export const accessKey = text(
  "lw_, 8 to 32 lower-case letters or digits, _, and 32 to 128 letters or digits",
  z.string().refine((given) => readKeyId(given) !== null),
);
export const score: Kind<number> = {
  rule: "a number from 1 to 10",
  schema: z
    .string()
    .refine((given) => /^\d+(\.\d+)?$/.test(given) && Number(given) >= 1 && Number(given) <= 10)
    .transform(Number),
};
export const logLevel: Kind<LogLevel> = {
  rule: `one of ${LOG_LEVELS.join(", ")}`,
  schema: z.enum(LOG_LEVELS),
};
export const roles: Kind<readonly ProcessRole[]> = {
  rule: `a comma separated list of ${PROCESS_ROLES.join(", ")}`,
  schema: z
    .string()
    .transform((given) => [...new Set(given.split(",").map((part) => part.trim()))])
    .pipe(z.array(z.enum(PROCESS_ROLES))),
};
export const keptDays = whole(4, 36_500, "days");
/** Null: all. */
export const hotDays: Kind<number | null> = {
  rule: `${keptDays.rule}, or all`,
  schema: z.union([z.literal("all").transform(() => null), keptDays.schema]),
};
export const flag: Kind<boolean> = {
  rule: "true or false",
  schema: z.enum(["true", "false"]).transform((given) => given === "true"),
};
