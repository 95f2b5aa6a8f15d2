/** Conditions of polling, of keys, of the archive and of the disk. */
import { type DamagedFile, readDamagedFiles } from "#db/archive/bring-file.ts";
import type { DailyGrowth } from "#db/health/service-status.ts";
import { type HeldCounts, readHeldCounts } from "#db/ingest/quarantine.ts";
import { type Pause, readPauses } from "#db/ingest/request-budgets.ts";
import { readKeyProblem } from "#db/people/pseudonymise.ts";
import { readZoneHealth, type ZoneHealth } from "#db/proof/platform-health.ts";
import { type DiskSpace, describeDisk, formatBytes } from "#lib/disk.ts";
import { many, showTime } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { DEFAULT_ACCOUNT } from "#model/zones.ts";
import { defineCondition, type Scope } from "./condition.ts";
import { COVERAGE_CONDITIONS, isWatched } from "./coverage.ts";
import { DELIVERY_CONDITIONS } from "./delivery.ts";
import { notRunning } from "./processes.ts";

/** A process that lacks the pseudonym key reports it every minute. */
const KEY_REPORT_MS = 3 * MINUTE_MS;

const pseudonymKey = defineCondition<{ problem: string | null; held: readonly HeldCounts[] }>({
  name: "pseudonym-key",
  of: "service",
  severity: "critical",
  isShownEarly: true,
  ready: true,
  read: async ({ db }) => [
    { problem: await readKeyProblem(db, KEY_REPORT_MS), held: await readHeldCounts(db) },
  ],
  find({ problem, held }, { nowMs }) {
    if (problem === null && held.length === 0) return null;
    const headline = `${problem ?? "The pseudonym key was missing."} ${describeHeld(held)}`;
    // Held events alone raise no alert: they are judged within a minute after the key is back.
    return { since: nowMs, headline, graceMs: problem === null ? Number.POSITIVE_INFINITY : 0 };
  },
  recovered: () => "The pseudonym key is present again, and no event is held back",
});

function describeHeld(held: readonly HeldCounts[]): string {
  if (held.length === 0) return "No event is held back yet.";
  const entries = held.reduce((sum, zone) => sum + zone.entries, 0);
  const zones = held.map(({ zoneId }) => zoneId).join(", ");
  return `Longwatch holds back ${many(entries, "entry", "entries")} of ${held.length === 1 ? "zone" : "zones"} ${zones} until the key is present.`;
}

/**
 * While a key is being changed, the platform refuses it for a moment, on one replica before the other. If one of the
 * two routes is refused for another reason, the platform still answers the other route every minute.
 */
const REFUSED_MS = 2 * MINUTE_MS;

/** Whether the platform has refused the zone for a while and not answered since. */
export function isRefused({ answeredAt, refusedSince }: ZoneHealth, nowMs: number): boolean {
  if (refusedSince === null || nowMs - refusedSince < REFUSED_MS) return false;
  return answeredAt === null || answeredAt < refusedSince;
}

async function readWatched(scope: Scope): Promise<readonly ZoneHealth[]> {
  return (await scope.once(readZoneHealth)).filter((zone) => isWatched(zone, scope.nowMs));
}

/** ` of account agency`; nothing if the configuration file has no accounts. */
function ofAccount(account: string | null): string {
  return account === null ? "" : ` of account ${account}`;
}

interface AccountZones {
  readonly account: string | null;
  readonly zones: readonly ZoneHealth[];
}

/** There is one alert per account whatever the number of zones, because there is one key. */
const credentials = defineCondition<AccountZones>({
  name: "credentials",
  of: "account",
  severity: "critical",
  ready: true,
  async read(scope) {
    const watched = Map.groupBy(
      await readWatched(scope),
      ({ zoneId }) => scope.zones[zoneId]?.account ?? null,
    );
    if (watched.size === 0) watched.set(null, []);
    return [...watched].map(([account, zones]) => ({
      account,
      zones,
      // The account of the EDGE_ variables has the alert of a service without other accounts. The zone leads the others to
      // the routes and the keys of the account.
      ...(account === null || account === DEFAULT_ACCOUNT
        ? {}
        : { key: account, zoneId: zones[0]?.zoneId ?? null }),
    }));
  },
  find({ account, zones }, { nowMs }) {
    const refused = zones.filter((zone) => isRefused(zone, nowMs));
    if (refused.length === 0) return null;
    const codes = [...new Set(refused.map(({ refusedWith }) => refusedWith ?? "refused"))].join(", ");
    const names = refused.map(({ zoneId }) => zoneId).join(", ");
    return {
      since: Math.min(...refused.map(({ refusedSince }) => refusedSince ?? nowMs)),
      headline: `The platform refuses the access key${ofAccount(account)} (${codes}). No events of ${refused.length === 1 ? "zone" : "zones"} ${names} are copied`,
    };
  },
  recovered: ({ account }) => `The platform accepts the access key${ofAccount(account)} again`,
});

/** A zone without a successful poll for so long needs attention. */
const UNPOLLED_MS = 5 * MINUTE_MS;
const ALERT_MS = 20 * MINUTE_MS;

/** The settings may ask for fewer polls than the limits expect. */
const limitOf = (leastMs: number, pollEveryMs: number) => Math.max(leastMs, 3 * pollEveryMs);

/** Whether this zone's events arrive. */
export function isPolled(zone: ZoneHealth, nowMs: number, pollEveryMs: number): boolean {
  const { polledThrough } = zone;
  return (
    !isRefused(zone, nowMs) &&
    polledThrough !== null &&
    nowMs - polledThrough < limitOf(ALERT_MS, pollEveryMs)
  );
}

type Unpolled = ZoneHealth & { readonly pauses: readonly Pause[]; readonly account: string | null };

const unpolled = defineCondition<Unpolled>({
  name: "unpolled",
  of: "zone",
  fingerprint: "quiet",
  severity: "critical",
  isShownEarly: true,
  async read(scope) {
    const pauses = await readPauses(scope.db);
    return (await readWatched(scope)).map((zone) => {
      const account = scope.zones[zone.zoneId]?.account ?? null;
      return { ...zone, pauses, account };
    });
  },
  find(zone, { nowMs, pollEveryMs, isOpen }) {
    const { zoneId, polledThrough, watchedSince } = zone;
    const since = Math.max(polledThrough ?? 0, watchedSince ?? nowMs);
    const isFine = isOpen
      ? isPolled(zone, nowMs, pollEveryMs)
      : nowMs - since <= limitOf(UNPOLLED_MS, pollEveryMs);
    if (isFine) return null;
    const last = polledThrough === null ? "yet" : `since ${showTime(polledThrough)} UTC`;
    return {
      since,
      headline: `Zone ${zoneId}: no poll has succeeded ${last}${explain(zone, nowMs)}. Longwatch cannot detect attacks there`,
      // The alert about the key says more.
      graceMs: isRefused(zone, nowMs) ? Number.POSITIVE_INFINITY : limitOf(ALERT_MS, pollEveryMs),
    };
  },
  recovered: ({ zoneId }) => `Zone ${zoneId}: events are polled again`,
});

/** Returns why the zone is not polled, as far as it is known. */
function explain(
  { zoneId, answeredAt, refusedSince, refusedWith, pauses, account }: Unpolled,
  nowMs: number,
): string {
  if (refusedSince !== null && refusedSince > (answeredAt ?? 0))
    return `: the platform refuses the access key${ofAccount(account)} for zone ${zoneId} (${refusedWith ?? "refused"})`;
  const whole = pauses.find(
    (pause) => pause.zoneId === null && pause.until > nowMs && pause.account === (account ?? DEFAULT_ACCOUNT),
  );
  if (whole !== undefined)
    return `: the platform refuses the requests for every zone${ofAccount(account)} (429) until ${showTime(whole.until)} UTC`;
  const own = pauses.find((pause) => pause.zoneId === zoneId);
  if (own === undefined) return "";
  return own.until > nowMs
    ? `: the platform refuses zone ${zoneId} (429) until ${showTime(own.until)} UTC`
    : `: the platform has refused zone ${zoneId} (429) since ${showTime(own.refusedSince ?? own.until)} UTC`;
}

const archive = defineCondition<{ files: readonly DamagedFile[] }>({
  name: "archive",
  of: "service",
  severity: "error",
  read: async ({ db }) => [{ files: await readDamagedFiles(db) }],
  find({ files: [first, ...others] }) {
    if (first === undefined) return null;
    const more = others.length === 0 ? "" : ` ${others.length} more files are damaged.`;
    return {
      since: first.damagedAt,
      headline: `The archive is damaged: the file ${first.path} of ${first.day} ${first.damage}. Searches of that day of zone ${first.zoneId} fail.${more} Restore the file from the bucket or a backup`,
    };
  },
  recovered: () => "Every file of the archive that is in use is whole again",
});

/** Counts and alerts, beside events and records. */
const OTHER_TABLES = 1.25;
/** The alert stays open until clearly more is free: a value that swings around the limit raises one alert. */
const CLEARLY = 1.2;

/** The disk has less free than a day of events takes. */
const disk = defineCondition<{ space: DiskSpace & DailyGrowth }>({
  name: "disk",
  of: "service",
  severity: "error",
  async read({ readDisk }) {
    const space = await readDisk?.();
    return space == null ? [] : [{ space }];
  },
  find({ space }, { nowMs, isOpen }) {
    const neededBytes = space.dayBytes * OTHER_TABLES + space.logBytes;
    if (space.freeBytes >= neededBytes * (isOpen ? CLEARLY : 1)) return null;
    return {
      since: nowMs,
      headline: `The disk may be full within a day: ${describeDisk(space)}. One more day of events may take ${formatBytes(neededBytes)}. Free space or enlarge the disk`,
    };
  },
  recovered: ({ space }) => `The disk has enough free space again: ${describeDisk(space)}`,
});

export const SERVICE_CONDITIONS = [notRunning, pseudonymKey, credentials, unpolled, archive, disk];

/** Every condition, the most urgent first. */
export const CONDITIONS = [...SERVICE_CONDITIONS, ...COVERAGE_CONDITIONS, ...DELIVERY_CONDITIONS];
