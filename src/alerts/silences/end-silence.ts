/** Ends and extends silences. */
import { z } from "zod";
import { expireSilence, extendSilence as moveEnd } from "#db/alerts/silences.ts";
import { showTime } from "#lib/format.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { SILENCE_ENDINGS } from "#model/kinds.ts";
import { notFound, RowId } from "#operations/fields.ts";
import { defineChange } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { describeSilence, findSilence, refuseForeign, Silence, zonesOf } from "./silence.ts";

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

export const extendSilence = defineChange({
  name: "silences.extend",
  summary: "Move the end of a silence to a later time",
  http: ["PATCH", "/api/v1/silences/:id"],
  tag: "Silences",
  scope: "act",
  refuses: [409, 422],
  input: z
    .strictObject({
      id: RowId.describe("The silence's number."),
      durationMinutes: DurationMinutes.meta({ flag: null }).describe("From now."),
      laterByMinutes: DurationMinutes.meta({ flag: "for", unit: "minutes" }).describe(
        "How much later the silence ends than before: 30m, 2h, 7d.",
      ),
      expiresAt: ExpiresAt,
    })
    .refine(hasOneEnd, MUST_END),
  output: Silence,
  example: { id: "3", expiresAt: "2026-11-21T18:00:00Z" },
  command: {
    examples: ["silences extend 3 --for 2h", "silences extend 3 --until 2026-11-21T18:00:00Z --by alice"],
    help: "With --for, the silence ends that much later than before, at most 90 days from now.",
    say: ({ id, expiresAt }) => `silence #${id} ends ${showTime(expiresAt)} UTC.\n`,
  },
  run: async (changing, { id, ...wanted }) => {
    const { caller, tx, now } = changing;
    const row = await findSilence(tx, caller, id);
    refuseForeign(caller, zonesOf(row));
    if (row.expiresAt.getTime() <= now) throw over(id);
    const expiresAtMs = readEnd(wanted, now, row.expiresAt.getTime());
    const extended = await moveEnd(tx, id, { expiresAtMs, nowMs: now });
    if (extended === "unknown") throw notFound(`silence ${id}`);
    if (extended === "over") throw over(id);
    if (extended === "earlier") {
      const rule = "must be later than the end that the silence has";
      const value = new Date(expiresAtMs).toISOString();
      throw new Refusal(422, { slug: "invalid-silence", mistakes: [{ field: "expiresAt", value, rule }] });
    }
    return {
      output: await describeSilence({ ...changing, db: tx }, extended),
      audit: {
        action: "silence.extended",
        subject: `silence ${id}`,
        details: { expiresAt: extended.expiresAt.toISOString() },
      },
    };
  },
});

function over(id: number): Refusal {
  return new Refusal(409, { slug: "silence-over", detail: `Silence ${id} has ended. Add a new one.` });
}

export const endSilence = defineChange({
  name: "silences.expire",
  summary: "End a silence now",
  http: ["DELETE", "/api/v1/silences/:id"],
  tag: "Silences",
  scope: "act",
  input: z.strictObject({ id: RowId.describe("The silence's number.") }),
  output: z.object({ id: z.number().int(), result: z.enum(SILENCE_ENDINGS) }),
  command: {
    examples: ["silences expire 3", "silences expire 3 --by alice"],
    help: "Longwatch then notifies the channels of alerts that still fire and were muted.",
    say: ({ id, result }) =>
      `silence #${id} ${result === "expired" ? "is expired" : "was already expired; nothing was changed"}.\n`,
  },
  run: async ({ caller, tx, now }, { id }) => {
    refuseForeign(caller, zonesOf(await findSilence(tx, caller, id)));
    const result = await expireSilence(tx, id, now);
    if (result === "unknown") throw notFound(`silence ${id}`);
    const entry = { action: "silence.expired", subject: `silence ${id}`, details: {} };
    return { output: { id, result }, audit: result === "expired" ? entry : null };
  },
});
