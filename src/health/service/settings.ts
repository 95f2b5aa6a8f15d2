/** The settings in force, and the space that is used. */
import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { readDayBytes, readStoredBytes, type StoredBytes } from "#db/health/service-status.ts";
import { listErasures, type RemainingFile } from "#db/people/erasures.ts";
import { readKeyId } from "#db/people/pseudonymise.ts";
import { type OldestRows, readOldestRows } from "#db/people/retention.ts";
import { formatBytes } from "#lib/disk.ts";
import { many, showAge, showTime } from "#lib/format.ts";
import { IsoTime, Name, toIso, toIsoOrNull } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import type { ServiceView } from "#operations/service-life.ts";
import type { Retention } from "#people/rules/retention.ts";

const TAG = "Service";

const Privacy = z
  .object({
    retention: z.object({
      rawDays: z.number(),
      ipDays: z.number(),
      eventDays: z.number(),
      rollUpDays: z.number(),
    }),
    classes: z
      .array(z.object({ name: Name, days: z.number(), variable: Name, oldest: IsoTime.nullable() }))
      .describe("The classes of data, how long each is kept, by which setting, and its oldest row."),
    keyId: Name.nullable().describe(
      "The key that pseudonyms are made with. Null before the first pseudonym or tombstone.",
    ),
    erasures: z
      .array(
        z.object({
          id: z.number().int(),
          requestedAt: IsoTime,
          untilAt: IsoTime.describe("Events up to this time are covered."),
          endedAt: IsoTime.nullable().describe("Null while stored data is still being processed."),
          zone: z.number().int().nullable(),
          family: z.number().int(),
          prefix: z.number().int(),
          counts: z.record(z.string(), z.number()),
        }),
      )
      .describe("The newest 200. No erasure says which address it covers."),
  })
  .meta({ id: "Privacy" });

export const showPrivacy = defineQuery({
  name: "privacy.show",
  summary: "Show the retention and the oldest row of each data class",
  http: ["GET", "/api/v1/privacy"],
  tag: TAG,
  scope: "admin",
  input: z.strictObject({}),
  output: Privacy,
  command: {
    examples: ["privacy show", "privacy show --json"],
    help: "Once an hour the service deletes every UTC day of a class that is completely past the retention of the class. The command reads only the database.",
    say: ({ classes, keyId }, { now, table }) => {
      const rows = classes.map(({ name, days, variable, oldest }) => [
        name,
        many(days, "day"),
        oldest === null ? "none stored" : `${showTime(oldest)} UTC`,
        oldest === null ? "" : showAge(now - Date.parse(oldest)),
        variable,
      ]);
      const key =
        keyId === null ? "no pseudonym or tombstone was made yet" : `pseudonyms are made with key ${keyId}`;
      return `${table(["CLASS", "KEPT FOR", "OLDEST", "AGE", "SETTING"], rows)}${key}\n`;
    },
  },
  run: async ({ db, service }) => {
    const { rawDays, ipDays, eventDays, rollUpDays } = service.retention;
    const erasures = (await listErasures(db, 200)).map((one) => ({
      ...one,
      requestedAt: toIso(one.requestedAt),
      untilAt: toIso(one.untilAt),
      endedAt: toIsoOrNull(one.endedAt),
      counts: { ...one.counts },
    }));
    return {
      retention: { rawDays, ipDays, eventDays, rollUpDays },
      classes: listClasses(service.retention, await readOldestRows(db)),
      keyId: await readKeyId(db),
      erasures,
    };
  },
});

function listClasses({ rawDays, ipDays, eventDays, rollUpDays }: Retention, oldest: OldestRows) {
  const classes = [
    ["records as received", rawDays, "LONGWATCH_RAW_DAYS", oldest.raw],
    ["unreadable entries", rawDays, "LONGWATCH_RAW_DAYS", oldest.quarantined],
    ["full addresses", ipDays, "LONGWATCH_IP_DAYS", oldest.fullAddress],
    ["events", eventDays, "LONGWATCH_RETENTION_DAYS", oldest.event],
    ["counts, spikes, alerts", rollUpDays, "LONGWATCH_ROLL_UP_DAYS", oldest.rollUp],
  ] as const;
  return classes.map(([name, days, variable, at]) => ({ name, days, variable, oldest: toIsoOrNull(at) }));
}

export const showSettings = defineQuery({
  name: "settings.show",
  summary: "Show the configuration in force",
  description: "The environment is that of the answering process. No secret is shown.",
  http: ["GET", "/api/v1/settings"],
  tag: TAG,
  scope: "admin",
  input: z.strictObject({}),
  output: z
    .object({
      variables: z.array(
        z.object({
          name: Name,
          value: Name.nullable().describe("A secret is shown as [secret]. Null if there is no value."),
          isSet: z.boolean().describe("False if the value is the default."),
        }),
      ),
      channels: z.array(z.object({ name: Name, kind: Name })),
      routing: z
        .unknown()
        .meta({ masked: "open" })
        .describe("Routes, inhibitions, quiet hours, links and zones, as they apply."),
      detection: z.unknown().meta({ masked: "open" }),
    })
    .meta({ id: "Settings" }),
  run: async ({ service }) => {
    const { channels, routing, detection } = service.alerting();
    return {
      variables: service.settings.map((one) => ({ ...one })),
      channels: channels.map(({ name, kind }) => ({ name, kind })),
      routing: JSON.parse(JSON.stringify(routing)) as unknown,
      detection: JSON.parse(JSON.stringify(detection)) as unknown,
    };
  },
});

const bytes = z.number();

export const Storage = z
  .object({
    databaseBytes: bytes,
    recordBytes: bytes.describe("Part of databaseBytes: the records as received."),
    archiveBytes: bytes.describe("The valid files of the archive."),
    dayBytes: bytes.nullable().describe("The largest growth of the last days. Null: not known yet."),
    freeBytes: bytes.nullable().describe("Null if the disk of the database cannot be read from here."),
    daysLeft: z.number().int().nullable().describe("Null if dayBytes or freeBytes is."),
  })
  .meta({ id: "Storage" });
export type Storage = z.infer<typeof Storage>;

/** Returns the sizes of what is stored, and for how many days the disk of the database has room. */
export async function readStorage({
  db,
  now,
  service,
}: {
  readonly db: Queryable;
  readonly now: number;
  readonly service: Pick<ServiceView, "readDisk">;
}): Promise<Storage> {
  const dayBytes = (await readDayBytes(db, now)) || null;
  const freeBytes = service.readDisk()?.freeBytes ?? null;
  const daysLeft = freeBytes === null || dayBytes === null ? null : Math.floor(freeBytes / dayBytes);
  return { ...(await readStoredBytes(db)), dayBytes, freeBytes, daysLeft };
}

/** Returns the sizes as a part of a sentence. */
export function describeSizes({ databaseBytes, recordBytes, archiveBytes }: StoredBytes): string {
  return `database ${formatBytes(databaseBytes)} (records as received ${formatBytes(recordBytes)}), archive ${formatBytes(archiveBytes)}`;
}

export function describeStorage(storage: Storage): string {
  const { dayBytes, freeBytes, daysLeft } = storage;
  const unknown =
    dayBytes === null ? "the growth of a day is not known" : "the database's disk cannot be read from here";
  const left =
    daysLeft === null || dayBytes === null
      ? `days until the disk is full: unknown, ${unknown}`
      : `${many(daysLeft, "day")} until the disk is full: ${formatBytes(freeBytes ?? 0)} free, ${formatBytes(dayBytes)} a day`;
  return `storage: ${describeSizes(storage)}; ${left}`;
}

/** Returns the sentence about a file of the archive that still holds erased events. */
export function describeErasedFile({ path, events, until, problem }: RemainingFile): string {
  const amount = events === null ? "An unknown number of erased events" : many(events, "erased event");
  const where = problem === null ? `caches of other processes may hold ${path}` : `${path} was not deleted`;
  const why = problem === null ? "" : ` (${problem})`;
  return `${amount} until ${showTime(until)} UTC: ${where}${why}`;
}
