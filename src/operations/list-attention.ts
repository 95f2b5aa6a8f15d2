import type { HeldCounts } from "#db/ingest/held-pages.ts";
import { formatHours, many, showTime } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { AttentionKind } from "#model/kinds.ts";
import type { UnpolledZone } from "./read-unpolled.ts";
import type { ZoneCoverage } from "./read-zones.ts";
import type { ServiceLife } from "./service-life.ts";

/** An unsealed hour that expires sooner needs attention. */
const NEAR_HOURS = 24;

/** The state of the service and the database at one moment. */
export interface Looked {
  /** Null if they are not looked at. */
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
  /** The events that are held back until the key is present. */
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
  { service, channels, zones, unpolled, keyProblem, held, givenUp, selfAlerts, newlyWatched }: Looked,
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
    ...held.map((counts) =>
      note(
        "pseudonym-key",
        `zone ${counts.zoneId}: ${describeHeld(counts)} held back until the pseudonym key is present (docs/privacy.md)`,
        null,
        counts.zoneId,
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

/** Names what is held back. A page may hold records of known events, or only entries that cannot be read. */
function describeHeld({ events, blocks, entries }: HeldCounts): string {
  const parts = [
    ...(events > 0 ? [many(events, "event")] : []),
    ...(blocks > 0 && events === 0 ? ["the records of events"] : []),
    ...(entries > 0 ? [many(entries, "unreadable entry", "unreadable entries")] : []),
  ];
  return parts.join(" and ");
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
