import { z } from "zod";
import { EVENT_FORMATS } from "#model/kinds.ts";
import { SINKS } from "#stages/delivery/sinks/registry.ts";
import { toEntryUnion, toFieldsByKind } from "./entry-fields.ts";
import { zones } from "./zone-schema.ts";

const START_RULE = "must be now, all, or a time before now such as -72h";
const BATCH_RULE = "must be a whole number from 1 to 5000";

/** The settings that every destination has besides those of its kind. */
const shared = {
  zones: zones.optional().describe("numbers, or names from zones; if missing, every zone"),
  where: z
    .array(z.string().max(10_000))
    .min(1)
    .max(50)
    .optional()
    .describe("filters such as action:eq:block, as of `longwatch search`; all must match"),
  format: z
    .enum(EVENT_FORMATS)
    .default("event")
    .describe("raw: the record as received; event: Longwatch's own form; ocsf: Open Cybersecurity Schema"),
  batchEvents: z.int(BATCH_RULE).min(1, BATCH_RULE).max(5_000, BATCH_RULE).default(500),
  start: z
    .string(START_RULE)
    .regex(/^(?:now|all|-(?:\d{1,6}[smhd])+)$/, START_RULE)
    .default("now")
    .describe("the events with which a new destination begins; all: every kept event"),
};

/** Settings that every destination has. */
export const destinationSettings = z.object(shared);

export const forwardFields = toFieldsByKind(SINKS, shared);

/** One destination in the file. */
export const forwardEntry = toEntryUnion(forwardFields);
