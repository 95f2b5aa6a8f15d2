import { z } from "zod";
import { expireSilence, extendSilence as moveEnd } from "#db/alerting/silences.ts";
import { showTime } from "#lib/format.ts";
import { SILENCE_ENDINGS } from "#model/kinds.ts";
import { notFound, RowId } from "../fields.ts";
import { defineChange } from "../operation.ts";
import { Refusal } from "../refusal.ts";
import { describeSilence, findSilence, refuseForeign, Silence, zonesOf } from "./silence.ts";
import { DurationMinutes, ExpiresAt, hasOneEnd, MUST_END, readEnd } from "./silence-end.ts";

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
    say: ({ id, expiresAt }) => `silence #${id} ends ${showTime(Date.parse(expiresAt))} UTC.\n`,
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
