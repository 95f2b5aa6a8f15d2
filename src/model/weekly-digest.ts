/** The figures of the weekly digest, and why there may be no events. */
import { z } from "zod";
import type { AlertMessage } from "./alert-message.ts";
import { MARKS } from "./kinds.ts";

// No text holds an address: who writes one masks it before.
const text = z.string().meta({ masked: "open" });
const count = z.number().int();
const ofRule = { zoneId: z.number().int(), ruleId: text };

/** A line of the digest, and the address of the console's page about it. */
export const digestLine = z.object({ text, page: text.nullable() });
export type DigestLine = z.infer<typeof digestLine>;

/** The figures of one week, Monday to Monday in UTC. */
export const weekFigures = z.object({
  from: text.describe("The Monday on which the week begins: 2026-11-16."),
  to: text.describe("The Monday after the week."),
  hours: z
    .object({ passed: count, sealed: count, open: count, gap: count, unwatched: count })
    .describe("Hours of all zones since each was first watched."),
  events: z
    .object({ total: z.number(), before: z.number().nullable() })
    .describe("before: in the week before; null if nothing was watched then."),
  changedZones: z
    .array(z.object({ zoneId: z.number().int(), total: z.number(), before: z.number(), hoursBefore: count }))
    .default([])
    .describe("Zones that differ most from the week before, of which `hoursBefore` hours are known."),
  changedRules: z
    .array(z.object({ ...ofRule, total: z.number(), before: z.number() }))
    .describe("Rules that differ most from the week before, in zones that were watched all of it."),
  silentRules: z.array(z.object(ofRule)).describe("Rules that fell silent in the week."),
  alerts: z
    .object({
      fired: count,
      notified: count,
      acknowledged: count,
      medianMs: z.number().nullable(),
      worstMs: z.number().nullable(),
    })
    .describe("medianMs, worstMs: the time from an alert to its acknowledgement."),
  marks: z.array(z.object({ mark: z.enum(MARKS), alerts: count })),
  fewAddresses: z
    .array(z.object({ ...ofRule, alerts: count }))
    .describe("Rules that spiked alone from few addresses, and notified nobody."),
  storage: z
    .object({
      daysKept: count,
      dayBytes: z.number(),
      freeBytes: z.number().nullable(),
      daysLeft: count.nullable(),
    })
    .nullable()
    .describe("Null for a key of some zones. freeBytes: null if the disk of the database cannot be read."),
  hands: z.array(digestLine).describe("What will need a hand in the week after."),
});
export type WeekFigures = z.infer<typeof weekFigures>;

type EventFacts =
  | "windowMinutes"
  | "count"
  | "usual"
  | "threshold"
  | "score"
  | "peak"
  | "times"
  | "actions"
  | "top"
  | "sparkline"
  | "advice"
  | "links"
  | "howToSilence";

/** The event members of a message without events: an alert about Longwatch itself, or a digest. */
export const NO_EVENTS: Pick<AlertMessage, EventFacts> = {
  windowMinutes: 1,
  count: 0,
  usual: 0,
  threshold: 0,
  score: 0,
  peak: 0,
  times: null,
  actions: { blocked: 0, logged: 0, challenged: 0, other: 0 },
  top: { ips: [], asns: [], countries: [], paths: [], userAgents: [], ja4s: [] },
  sparkline: [],
  advice: { state: "unavailable", text: null, reason: null },
  links: [],
  howToSilence: null,
};
