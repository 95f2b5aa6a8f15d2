import { POOLER_RULE, UTF8_RULE } from "#db/postgres/server.ts";
import { formatBytes } from "#lib/disk.ts";
import { formatDecimal, formatNumber } from "#lib/format.ts";
import { describeSizes } from "../service/settings.ts";
import {
  type DiskFacts,
  type DoctorFacts,
  type Fact,
  type Finding,
  note,
  ok,
  type PostgresFacts,
  problem,
  type RedisFacts,
  warning,
} from "./facts.ts";

const LEAST_VERSION = 150_000;
/** Times of events and leases are Postgres's; a person compares them with a clock on the wall. */
const MAX_OFFSET_MS = 2_000;
const FEW_CONNECTIONS = 20;
/** The longest statement of the roll-up and of partitions takes less. */
const LEAST_TIMEOUT_MS = 60_000;
const SOON_DAYS = 14;
const NOW_DAYS = 3;
const MONTH_DAYS = 30;

const PG = "postgres";

export function judgePostgres(postgres: Fact<PostgresFacts>): Finding[] {
  if ("failed" in postgres)
    return [
      problem(
        PG,
        `The database cannot be read: ${postgres.failed}.`,
        "Start Postgres or correct DATABASE_URL.",
      ),
    ];
  const { value: facts } = postgres;
  const findings = [...judgeServer(facts), ...judgeSettings(facts)];
  const rights = facts.excess.map(({ excess, instead }) =>
    warning("rights", `${upper(excess)}.`, `${upper(instead)}.`),
  );
  const hasProblem = findings.some(({ level }) => level !== "ok");
  return [
    ...(hasProblem ? [] : [ok(PG, `Postgres ${facts.version} has the settings that Longwatch needs.`)]),
    ...findings,
    ...(rights.length > 0
      ? rights
      : [ok("rights", "The database role has no rights that the service never needs.")]),
    judgeOffset("Postgres", facts.offsetMs),
  ];
}

function judgeServer(facts: PostgresFacts): Finding[] {
  const { versionNumber, version, encoding, isReadOnly, hasTables } = facts;
  const free = facts.maxConnections - facts.usedConnections;
  return [
    ...(versionNumber < LEAST_VERSION
      ? [
          problem(
            PG,
            `Postgres is ${version}; Longwatch needs 15 or newer.`,
            "Upgrade the server (pg_upgrade).",
          ),
        ]
      : []),
    ...(encoding === "UTF8"
      ? []
      : [
          problem(
            PG,
            `The database's encoding is ${encoding}, which cannot hold every request.`,
            `${upper(UTF8_RULE)}.`,
          ),
        ]),
    ...(facts.isShared
      ? [problem(PG, "The pooler gives each transaction another session.", `${upper(POOLER_RULE)}.`)]
      : []),
    ...(isReadOnly
      ? [
          problem(
            PG,
            "The server accepts no writes: it is a standby or read only.",
            "Name the primary in DATABASE_URL.",
          ),
        ]
      : []),
    ...(hasTables
      ? []
      : [
          problem(
            PG,
            "The database has no tables of Longwatch.",
            "Run npm run -s longwatch -- migrate, or run npm start.",
          ),
        ]),
    ...(free < FEW_CONNECTIONS
      ? [
          warning(
            PG,
            `${facts.usedConnections} of ${facts.maxConnections} connections are in use.`,
            "Raise max_connections, or run fewer processes.",
          ),
        ]
      : []),
  ];
}

function judgeSettings(facts: PostgresFacts): Finding[] {
  const { fsync, fullPageWrites, synchronousCommit, autovacuum, statementTimeoutMs, differing } = facts;
  const off = (name: string, effect: string) =>
    problem(PG, `${name} is off: ${effect}.`, `Set ${name} = on and reload the server.`);
  return [
    ...(fsync === "off" ? [off("fsync", "a crash of the machine may destroy the database")] : []),
    ...(fullPageWrites === "off"
      ? [off("full_page_writes", "a crash of the machine may damage pages of the database")]
      : []),
    ...(autovacuum === "off" ? [off("autovacuum", "tables grow without end and searches become slow")] : []),
    ...(synchronousCommit === "off"
      ? [
          warning(
            PG,
            "synchronous_commit is off: a crash may lose the last second of acknowledged alerts and changes of keys.",
            "Set synchronous_commit = on.",
          ),
        ]
      : []),
    ...differing.map((difference) =>
      problem(
        PG,
        `The setting ${difference}, although each session sets it: texts of the database are read wrongly.`,
        `${upper(POOLER_RULE)}.`,
      ),
    ),
    ...(statementTimeoutMs > 0 && statementTimeoutMs < LEAST_TIMEOUT_MS
      ? [
          warning(
            PG,
            `The role's statement_timeout is ${statementTimeoutMs} ms; long work such as the roll-up may never end.`,
            "Remove it from the role, or set at least 60 s: the service limits its statements by itself.",
          ),
        ]
      : []),
  ];
}

/** Judges how far another clock is ahead of this machine's. */
export function judgeOffset(of: string, offsetMs: number): Finding {
  const seconds = formatDecimal(Math.abs(offsetMs) / 1_000);
  if (Math.abs(offsetMs) <= MAX_OFFSET_MS)
    return ok("clock", `The clock of ${of} agrees with this machine's.`);
  const side = offsetMs > 0 ? "ahead of" : "behind";
  return warning(
    "clock",
    `The clock of ${of} is ${seconds} s ${side} this machine's.`,
    "Synchronise both machines with NTP (timedatectl, chronyc tracking).",
  );
}

export function judgeRedis(redis: Fact<RedisFacts> | null): Finding[] {
  if (redis === null) return [ok("redis", "REDIS_URL is not set: the queues are in Postgres.")];
  if ("failed" in redis)
    return [
      problem(
        "redis",
        `Redis cannot be read: ${redis.failed}.`,
        "Start Redis or correct REDIS_URL. Until then, jobs wait for their next tick.",
      ),
    ];
  const { version, policy, maxBytes, usedBytes, hasAppendOnlyFile, isWriteFailing } = redis.value;
  const findings: Finding[] = [];
  if (policy !== "noeviction")
    findings.push(
      problem(
        "redis",
        `maxmemory-policy is ${policy}: Redis may remove queued jobs.`,
        "Set maxmemory-policy noeviction.",
      ),
    );
  if (maxBytes > 0 && usedBytes > 0.8 * maxBytes)
    findings.push(
      warning(
        "redis",
        `Redis uses ${formatBytes(usedBytes)} of ${formatBytes(maxBytes)}.`,
        "Raise maxmemory, or find out which other program uses this Redis.",
      ),
    );
  if (isWriteFailing)
    findings.push(
      warning(
        "redis",
        "Redis could not write its last snapshot or log.",
        "Look at the log and the disk of Redis.",
      ),
    );
  if (!hasAppendOnlyFile)
    findings.push(
      note(
        "redis",
        "Redis has no append-only file: after its restart queued jobs are gone until their next tick. No event is lost.",
        "Set appendonly yes if that delay matters.",
      ),
    );
  return findings.length > 0
    ? findings
    : [ok("redis", `Redis ${version} keeps every job (noeviction) and writes an append-only file.`)];
}

export function judgeBucket(bucket: Fact<string> | null): Finding[] {
  if (bucket === null) return [];
  if ("value" in bucket) return [ok("archive", `The bucket ${bucket.value} answers.`)];
  const next =
    "Correct that. Until then, days stay in Postgres, and searches of days that are not cached fail.";
  return [problem("archive", `The archive's bucket cannot be used: ${bucket.failed}.`, next)];
}

/** Judges the disks by the days that are left at the largest growth of the last days. */
export function judgeDisks(disks: readonly DiskFacts[], dayBytes: number | null): Finding[] {
  return disks.map(({ holds, folder, freeBytes, totalBytes, holdsDatabase }) => {
    const free = `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} are free on the disk of ${holds} (${folder})`;
    if (dayBytes === null || dayBytes === 0 || !holdsDatabase) {
      const text = holdsDatabase
        ? `${free}; for how many days is unknown before a day has grown.`
        : `${free}.`;
      return freeBytes < 0.05 * totalBytes
        ? warning("disk", text, "Free space or enlarge the disk.")
        : ok("disk", text);
    }
    const days = freeBytes / dayBytes;
    const left = `${free}: ${formatNumber(days)} days at ${formatBytes(dayBytes)} a day`;
    const next = "Enlarge the disk, lower LONGWATCH_RETENTION_DAYS, or archive days (docs/archive.md).";
    if (days < NOW_DAYS) return problem("disk", `${left}.`, next);
    return days < SOON_DAYS ? warning("disk", `${left}.`, next) : ok("disk", `${left}.`);
  });
}

/** Names the sizes of what is stored. */
export function judgeSizes(postgres: Fact<PostgresFacts>): Finding[] {
  const stored = "value" in postgres ? postgres.value.stored : null;
  return stored === null ? [] : [ok("storage", `Stored: ${describeSizes(stored)}.`)];
}

/** Says what can be known of a database whose disk this machine does not see: its size, and how much it will take. */
export function judgeDatabaseSize({
  postgres,
  disks,
  kept,
}: Pick<DoctorFacts, "postgres" | "disks" | "kept">): Finding[] {
  if ("failed" in postgres || disks.some(({ holdsDatabase }) => holdsDatabase)) return [];
  const { databaseBytes, dayBytes } = postgres.value;
  const size = `The database has ${formatBytes(databaseBytes)}`;
  const unknown = "The free space of the server's disk cannot be read from here";
  const next = "Compare it with the free space on the server: df, or the provider's console.";
  if (dayBytes === null || dayBytes === 0)
    return [note("disk", `${size}; its growth is not known yet. ${unknown}.`, next)];
  const all = `the ${formatNumber(kept.days)} days of ${kept.setting} up to ${formatBytes(kept.days * dayBytes)}`;
  const month =
    kept.days > MONTH_DAYS ? `${MONTH_DAYS} days take ${formatBytes(MONTH_DAYS * dayBytes)}, ` : "";
  return [
    note("disk", `${size} and grows by ${formatBytes(dayBytes)} a day: ${month}${all}. ${unknown}.`, next),
  ];
}

function upper(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
