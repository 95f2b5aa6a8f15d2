/** The facts that doctor judges, and its findings. */
import type { ServerFacts } from "#db/health/server-facts.ts";
import type { StoredBytes } from "#db/health/service-status.ts";
import type { Examined } from "#jobs/health/conditions/condition.ts";
import type { ServiceLife } from "#jobs/health/conditions/processes.ts";

/** A fact, or why it could not be gathered: one line for a person. */
export type Fact<Value> = { readonly value: Value } | { readonly failed: string };

export interface PlatformFacts {
  /** Null if there is only the account of the EDGE_ variables. */
  readonly account: string | null;
  readonly host: string;
  /** The roles that the platform lists for the access key; null if its list does not have the key. */
  readonly roles: Fact<readonly string[] | null>;
  /** Failure of one search of the last hour; null if it was answered. */
  readonly zones: readonly { readonly zoneId: number; readonly failed: string | null }[];
  /** How far the platform's clock is ahead of this machine's. Its header has whole seconds. */
  readonly offsetMs: Fact<number>;
}

export interface PostgresFacts extends ServerFacts {
  /** Whether a pooler gives each transaction another session. */
  readonly isShared: boolean;
  /** How far Postgres's clock is ahead of this machine's. */
  readonly offsetMs: number;
  /** Rights that the service never needs, each with what to do. */
  readonly excess: readonly { readonly excess: string; readonly instead: string }[];
  /** The largest growth of the last days; null without tables. */
  readonly dayBytes: number | null;
  readonly databaseBytes: number;
  /** Null without tables. */
  readonly stored: StoredBytes | null;
}

export interface RedisFacts {
  readonly version: string;
  readonly policy: string;
  /** 0 for no limit. */
  readonly maxBytes: number;
  readonly usedBytes: number;
  readonly hasAppendOnlyFile: boolean;
  /** Whether the last snapshot or rewrite failed. */
  readonly isWriteFailing: boolean;
}

export interface DiskFacts {
  /** Data that the disk holds: "the database", "the archive". */
  readonly holds: string;
  readonly folder: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly holdsDatabase: boolean;
}

export interface ChannelFacts {
  readonly name: string;
  readonly kind: string;
  /** Reason why the channel cannot be opened, or the test message cannot be rendered; null if both work. */
  readonly failed: string | null;
}

export interface FileFacts {
  readonly file: string;
  readonly holds: string;
  /** The permission bits. */
  readonly mode: number;
  /** Whether only its owner should read it; else only its owner should write it. */
  readonly isSecret: boolean;
}

/** Entries of the data folder that other users of the machine may use. */
export interface LooseFacts {
  readonly folder: string;
  readonly entries: readonly { readonly path: string; readonly mode: number }[];
}

/** Everything that `longwatch doctor` judges. */
export interface DoctorFacts {
  /** The version of this program. */
  readonly version: string;
  /** By account; empty if no platform is configured. */
  readonly platform: readonly PlatformFacts[];
  /** The conditions of the service, as its tables say; empty if the database cannot be read. */
  readonly conditions: readonly Examined[];
  readonly postgres: Fact<PostgresFacts>;
  /** Null if the queues are in Postgres. */
  readonly redis: Fact<RedisFacts> | null;
  /** The address of the archive's bucket, once its list was read; null if there is none. */
  readonly bucket: Fact<string> | null;
  readonly disks: readonly DiskFacts[];
  /** How long Postgres keeps a day of events, and the setting that says so. */
  readonly kept: { readonly days: number; readonly setting: string };
  readonly channels: readonly ChannelFacts[];
  /** The address of the console in messages; null if it is not known. */
  readonly consoleUrl: string | null;
  /** The issuer at which people sign in, once its discovery document was read; null if there is none. */
  readonly issuer: Fact<string> | null;
  /** The rule that known sources break, those of the configuration file and the stored ones together. */
  readonly tooManyKnown: { readonly rule: string; readonly count: number } | null;
  /** The configured destinations of forwarded events without a fault, and whether each has ever accepted events. */
  readonly destinations: readonly { readonly destination: string; readonly isUsed: boolean }[];
  /** The configuration file whose channels were read; null if there is none. */
  readonly configFile: string | null;
  readonly files: readonly FileFacts[];
  /** Null if there is no data folder, or it cannot be read. */
  readonly loose: LooseFacts | null;
  /** How long an admin key will be valid: 0 if none is, null for ever. Undefined if the database cannot be read. */
  readonly adminKeyLeftMs: number | null | undefined;
  /** Null if the database cannot be read. */
  readonly service: ServiceLife | null;
}

/**
 * ok: nothing to do. note: worth knowing. warning: works now, and may not later. problem: something does not work, or
 * events may be lost.
 */
export type FindingLevel = "ok" | "note" | "warning" | "problem";

export interface Finding {
  /** The part that was examined: `platform`, `postgres`, `disk`. */
  readonly check: string;
  readonly level: FindingLevel;
  readonly text: string;
  /** Next step for a person; null if there is none. */
  readonly next: string | null;
}

export function ok(check: string, text: string): Finding {
  return { check, level: "ok", text, next: null };
}

export function note(check: string, text: string, next: string | null = null): Finding {
  return { check, level: "note", text, next };
}

export function warning(check: string, text: string, next: string): Finding {
  return { check, level: "warning", text, next };
}

export function problem(check: string, text: string, next: string): Finding {
  return { check, level: "problem", text, next };
}
