import { z } from "zod";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { Refusal } from "../refusal.ts";

const MAX_MS = 90 * DAY_MS;
const MINUTES_RULE = "must be from 1 minute to 90 days";

export const DurationMinutes = z
  .int(MINUTES_RULE)
  .min(1, MINUTES_RULE)
  .max(MAX_MS / MINUTE_MS, MINUTES_RULE)
  .optional();

export const ExpiresAt = z.iso
  .datetime({ offset: true, error: "must be an ISO 8601 time with a UTC offset (2026-11-21T14:00:00Z)" })
  .optional()
  .meta({ flag: "until", time: true })
  .describe("When the silence ends.");

/** The members that say when a silence ends. One of them must be given. */
interface WantedEnd {
  readonly durationMinutes?: number | undefined;
  readonly expiresAt?: string | undefined;
  readonly laterByMinutes?: number | undefined;
}

export const hasOneEnd = (wanted: WantedEnd) => listEnds(wanted).length === 1;

/** Options of a rule between members. */
export const INVALID_SILENCE = {
  params: { slug: "invalid-silence" },
  // Mistakes of other members do not hide this one.
  when: () => true,
};

export const MUST_END = {
  path: ["expiresAt"],
  error: "must be given, or the duration instead: a silence has one end",
  ...INVALID_SILENCE,
};

function listEnds({ durationMinutes, expiresAt, laterByMinutes }: WantedEnd) {
  return Object.entries({ durationMinutes, expiresAt, laterByMinutes }).flatMap(([field, value]) =>
    value === undefined ? [] : [{ field, value }],
  );
}

/**
 * Returns the end in epoch ms. `endsAtMs` is the end that an existing silence has.
 * @throws {Refusal} 422
 */
export function readEnd(wanted: WantedEnd, nowMs: number, endsAtMs = nowMs): number {
  const [end] = listEnds(wanted);
  if (end === undefined) throw new Error("a silence without an end was not refused");
  const { field, value } = end;
  const begin = field === "laterByMinutes" ? endsAtMs : nowMs;
  const endMs = typeof value === "number" ? begin + value * MINUTE_MS : Date.parse(value);
  if (endMs - nowMs >= MINUTE_MS && endMs - nowMs <= MAX_MS) return endMs;
  const rule = "must let the silence end 1 minute to 90 days from now";
  throw refuse({ field, value: String(value), rule });
}

function refuse(mistake: {
  readonly field: string;
  readonly value?: string;
  readonly rule: string;
}): Refusal {
  return new Refusal(422, {
    slug: "invalid-silence",
    detail: `The end of the silence ${mistake.rule}.`,
    mistakes: [mistake],
  });
}
