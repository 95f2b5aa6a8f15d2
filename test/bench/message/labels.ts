import { z } from "zod";
import { HALVES, TRUTHS } from "./situations/situation.ts";

export const WORLDS = ["requests", "streams"] as const;
export type World = (typeof WORLDS)[number];

const Time = z.iso.datetime({ error: "must be an ISO date-time" });
const Texts = z.array(z.string());
const Count = z.int().min(0);

export const ZoneLabel = z.strictObject({
  zone: z.string().min(1),
  situation: z.string(),
  half: z.enum(HALVES),
  repeat: Count,
  site: z.string(),
  paranoia: z.union([z.literal(1), z.literal(2)]),
  mode: z.enum(["block", "challenge", "log"]),
  addresses: z.enum(["plain", "masked", "list", "anonymous"]),
  firstDay: z.boolean(),
  from: Time,
  to: Time,
  events: Count,
});
export type ZoneLabel = z.infer<typeof ZoneLabel>;

export const CaseLabel = z.strictObject({
  case: z.string().min(1),
  situation: z.string(),
  half: z.enum(HALVES),
  zone: z.string().min(1),
  truth: z.enum(TRUTHS),
  accept: z.array(z.enum([...TRUTHS, "unclear"])).min(1),
  tell: z.enum(["must", "may"]),
  page: z.enum(["may", "no"]),
  /** The case of which this one is the second wave. */
  wave: z.string().nullable(),
  firstDay: z.boolean(),
  from: Time,
  to: Time,
  requests: Count,
  events: Count,
  /** Requests that the edge stopped. */
  stopped: Count,
  /** Addresses as the zone shows them, how many there are, and the networks' numbers. */
  addresses: Texts,
  senders: Count,
  asns: Texts,
  agents: Texts,
  ja4s: Texts,
  paths: Texts,
  rules: z.record(z.string(), Count),
});
export type CaseLabel = z.infer<typeof CaseLabel>;

export const Labels = z.strictObject({
  world: z.enum(WORLDS),
  seed: z.int(),
  repeats: z.int().min(1),
  zones: z.array(ZoneLabel),
  cases: z.array(CaseLabel),
});
export type Labels = z.infer<typeof Labels>;

const MAX_MISTAKES = 10;

/**
 * Reads labels that were kept.
 * @throws {RangeError} naming every mistake with its field, value and rule.
 */
export function readLabels(text: string): Labels {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new RangeError(`the labels are not JSON: ${String(error)}`);
  }
  const read = Labels.safeParse(value);
  if (read.success) return read.data;
  const mistakes = read.error.issues.slice(0, MAX_MISTAKES).map(({ path, message }) => {
    const shown = JSON.stringify(
      path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], value),
    );
    return `field ${path.join(".")}: ${shown?.slice(0, 80) ?? "nothing"} is wrong: ${message}`;
  });
  throw new RangeError(mistakes.join("\n"));
}
