import { z } from "zod";
import { listErasures } from "#db/privacy/erasures.ts";
import { readKeyId } from "#db/privacy/pseudonym-keys.ts";
import { type OldestRows, readOldestRows } from "#db/privacy/retention.ts";
import { many, showAge, showTime } from "#lib/format.ts";
import type { Retention } from "#stages/privacy/retention.ts";
import { IsoTime, Name, toIso, toIsoOrNull } from "../fields.ts";
import { defineQuery } from "../operation.ts";

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
        oldest === null ? "none stored" : `${showTime(Date.parse(oldest))} UTC`,
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
