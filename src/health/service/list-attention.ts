/** What needs attention. */

import type { Queryable } from "#db/client.ts";
import type { HeldCounts } from "#db/ingest/held-entries.ts";
import { type Pause, readPauses } from "#db/ingest/request-budgets.ts";
import { listWatchedZones, readZoneHealth, type ZoneHealth } from "#db/proof/platform-health.ts";
import { formatHours, many, showTime } from "#lib/format.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { AttentionKind } from "#model/kinds.ts";
import type { ZoneCoverage } from "#operations/read-zones.ts";
import type { ServiceLife } from "#operations/service-life.ts";

/** An unsealed hour that expires sooner needs attention. */
const NEAR_HOURS = 24;

/** The state of the service and the database at one moment. */
export interface AttentionFacts {
  /** Null if they were not read. */
  readonly channels: readonly { readonly name: string; readonly circuit: string }[] | null;
  readonly service: ServiceLife;
  /** The zones with their hours of the last 72 hours. */
  readonly zones: readonly ZoneCoverage[];
  /** Zones whose polls do not succeed. */
  readonly unpolled: readonly UnpolledZone[];
  /** Dead letters of the last 72 hours without a later message. */
  readonly givenUp: number;
  /** The problem with the pseudonym key that a running process reports, or null. */
  readonly keyProblem: string | null;
  /** The entries that are held until the key is present. */
  readonly held: readonly HeldCounts[];
  /** Since when, epoch ms, each zone is watched whose watch has only begun. */
  readonly newlyWatched: ReadonlyMap<number, number>;
  /** Unresolved alerts of Longwatch about itself. */
  readonly selfAlerts: number;
}

/** Something that a person should look at. */
export interface Attention {
  readonly kind: AttentionKind;
  /** Null if it is of no single zone. */
  readonly zoneId: number | null;
  readonly text: string;
  /** The command that shows more, without the program's name; null where the text says everything. */
  readonly command: string | null;
}

/**
 * Returns everything that needs attention, the most urgent first. A channel that is not in `configured` is ignored,
 * because it gets no more messages. Null means that the configured channels are not known.
 */
export function listAttention(
  { service, channels, zones, unpolled, keyProblem, held, givenUp, selfAlerts, newlyWatched }: AttentionFacts,
  configured: ReadonlySet<string> | null,
): Attention[] {
  const down = (channels ?? []).filter(
    ({ name, circuit }) => circuit !== "closed" && (configured === null || configured.has(name)),
  );
  const { missingRoles } = service;
  return [
    ...(missingRoles.length === 0
      ? []
      : [
          note(
            "not-running",
            `The service is not running: no live process has the role ${missingRoles.join(", ")}`,
          ),
        ]),
    ...(keyProblem === null ? [] : [note("pseudonym-key", keyProblem)]),
    ...held.map(({ zoneId, entries }) =>
      note(
        "pseudonym-key",
        `zone ${zoneId}: ${many(entries, "entry", "entries")} held back until the pseudonym key is present (docs/privacy.md)`,
        null,
        zoneId,
      ),
    ),
    ...unpolled.map(({ zoneId, since, reason }) => {
      const because = reason === null ? "" : `: ${reason}`;
      return note(
        "unpolled",
        `zone ${zoneId}: no poll has succeeded since ${showTime(since)} UTC${because}`,
        null,
        zoneId,
      );
    }),
    ...zones.flatMap(({ zoneId, suspicions }) =>
      suspicions.map(({ since, reason }) =>
        note(
          "suspect",
          `zone ${zoneId}: the platform's answers have been held back since ${showTime(since)} UTC. ${reason}`,
          `coverage --zone ${zoneId}`,
          zoneId,
        ),
      ),
    ),
    ...(down.length === 0
      ? []
      : [
          note(
            "channel",
            `Channels that do not deliver: ${down.map(({ name }) => name).join(", ")}`,
            "deliveries list",
          ),
        ]),
    ...(givenUp === 0
      ? []
      : [note("given-up", many(givenUp, "dead notification"), "deliveries list --state dead")]),
    ...(selfAlerts === 0
      ? []
      : [
          note(
            "self-alert",
            `${many(selfAlerts, "unresolved alert")} of Longwatch about itself`,
            "alerts list --kind self",
          ),
        ]),
    ...zones.flatMap(({ zoneId, nextToExpire, hours }) => [
      ...(nextToExpire !== null &&
      nextToExpire.hoursToLoss < NEAR_HOURS &&
      !isFirstCopy(newlyWatched.get(zoneId), hours)
        ? [note("near-loss", describeNear(zoneId, nextToExpire), `coverage --zone ${zoneId}`, zoneId)]
        : []),
      ...(hours.some(({ status }) => status === "gap")
        ? [
            note(
              "gap",
              `zone ${zoneId}: at least one of the last 72 hours is lost`,
              `gaps --zone ${zoneId}`,
              zoneId,
            ),
          ]
        : []),
    ]),
  ];
}

function note(
  kind: Attention["kind"],
  text: string,
  command: string | null = null,
  zoneId: number | null = null,
): Attention {
  return { kind, zoneId, text, command };
}

/**
 * The oldest hours of a first copy expire soon, whatever Longwatch does. After a break, hours of before it are sealed. The
 * first hours may be sealed a little before the zone's watch is recorded.
 */
function isFirstCopy(watchedSince: number | undefined, hours: ZoneCoverage["hours"]): boolean {
  if (watchedSince === undefined) return false;
  return hours.every(({ sealedAt }) => sealedAt === null || sealedAt >= watchedSince - HOUR_MS);
}

function describeNear(zoneId: number, next: { startsAt: number; hoursToLoss: number }): string {
  const hour = `${showTime(next.startsAt)} to ${showTime(next.startsAt + HOUR_MS).slice(11)} UTC`;
  return `zone ${zoneId}: the platform deletes ${hour} in ${formatHours(next.hoursToLoss)}, and it is not sealed yet`;
}

/** A zone without a successful poll for so long needs attention. The alert about it comes later. */
const UNPOLLED_MS = 5 * MINUTE_MS;
/** The service checks every zone once a minute. A zone that it has not checked for so long is not its zone any more. */
const WATCHED_MS = 5 * MINUTE_MS;

/** A zone of the running service whose polls do not succeed. */
interface UnpolledZone {
  readonly zoneId: number;
  /** When the last successful poll ended, or when the service began to watch the zone, epoch ms. */
  readonly since: number;
  /** Why, or null if it is not known here. */
  readonly reason: string | null;
}

/** Returns the zones without a successful poll for five minutes, or for three periods if that is longer. */
export async function readUnpolled(
  db: Queryable,
  now: number,
  { zoneIds, pollEveryMs }: { zoneIds: readonly number[] | null; pollEveryMs: number },
): Promise<UnpolledZone[]> {
  const watched = await listWatchedZones(db, now - WATCHED_MS);
  const health = await readZoneHealth(
    db,
    watched.filter((zoneId) => zoneIds === null || zoneIds.includes(zoneId)),
  );
  const limitMs = Math.max(UNPOLLED_MS, 3 * pollEveryMs);
  const sinceOf = (zone: ZoneHealth) => Math.max(zone.polledThrough ?? 0, zone.watchedSince ?? now);
  const unpolled = health.filter((zone) => now - sinceOf(zone) > limitMs);
  if (unpolled.length === 0) return [];
  const pauses = await readPauses(db);
  return unpolled.map((zone) => ({
    zoneId: zone.zoneId,
    since: sinceOf(zone),
    reason: explain(zone, pauses, now),
  }));
}

function explain(zone: ZoneHealth, pauses: readonly Pause[], now: number): string | null {
  const { zoneId, answeredAt, refusedSince, refusedWith } = zone;
  if (refusedSince !== null && refusedSince > (answeredAt ?? 0))
    return `the platform refuses the access key for zone ${zoneId} (${refusedWith ?? "refused"})`;
  const account = pauses.find((pause) => pause.zoneId === null && pause.until > now);
  if (account !== undefined)
    return `the platform refuses the requests for every zone (429) until ${showTime(account.until)} UTC`;
  const own = pauses.find((pause) => pause.zoneId === zoneId);
  if (own === undefined) return null;
  return own.until > now
    ? `the platform refuses zone ${zoneId} (429) until ${showTime(own.until)} UTC`
    : `the platform has refused zone ${zoneId} (429) since ${showTime(own.refusedSince ?? own.until)} UTC`;
}
