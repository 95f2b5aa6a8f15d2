import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { readAlert } from "#db/alerting/alert-reports.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { actOf, known, lineOf, MAX_ROW_ID, maySee, notFound, RowId } from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { DurationMinutes } from "#operations/silences/silence-end.ts";
import { SILENCE_SCOPES } from "#stages/alerting/message/silence-choices.ts";
import { ALERT_STATES } from "./alert-schemas.ts";
import { findAlert } from "./alerts.ts";
import type { ApiActs, ApiDeps } from "./api-deps.ts";

const Body = z
  .strictObject({
    note: lineOf(500).optional().describe("A reason, shown to everyone who looks at the alert."),
  })
  .nullish()
  .meta({ examples: [{ note: "on it" }] });

const Answer = z.object({
  id: z.number().int(),
  state: z.enum(ALERT_STATES),
  result: z
    .enum(["done", "noted", "unchanged"])
    .describe(
      "done: the state was changed. unchanged: the alert already had that state. noted: the alert already had that state, and the note was added.",
    ),
  channels: z.array(z.string()).describe("The channels that are notified or updated."),
});

/** `POST /api/v1/alerts/{id}/ack` and `.../resolve`: once is enough, twice is harmless. */
export function addAlertActs(app: FastifyInstance, deps: ApiDeps): void {
  const { acknowledge, resolve } = deps.acts;
  addAct(app, deps, {
    name: "ack",
    act: acknowledge,
    summary: "Acknowledge an alert, which stops its repeats",
  });
  addAct(app, deps, {
    name: "resolve",
    act: resolve,
    summary: "Resolve an alert and notify the channels that it notified",
  });
  addMark(app, deps);
  addManyActs(app, deps);
}

const MOST_IDS = 200;

export const ManyBody = z
  .strictObject({
    act: z.enum(["ack", "resolve", "silence"]),
    ids: z.array(z.int().min(1).max(MAX_ROW_ID)).min(1).max(MOST_IDS),
    note: lineOf(500).optional().describe("A reason, shown to everyone. A silence must have one."),
    durationMinutes: DurationMinutes.describe("Of silences: how long they last."),
    scope: z
      .enum(SILENCE_SCOPES)
      .optional()
      .describe(
        "Of silences: whether they name the alert's address, network or other source, its rule, or its zone. Default: the narrowest that the alert has; for a group, its zone.",
      ),
  })
  .meta({ examples: [{ act: "ack", ids: [17, 18], note: "on it" }] });

export const ManyAnswer = z.object({
  items: z.array(
    z.object({
      id: z.number().int(),
      result: z
        .enum(["done", "noted", "unchanged", "refused"])
        .describe("As for one alert. refused: nothing was changed, and `detail` says why."),
      state: z.enum(ALERT_STATES).nullable().describe("Null for a silence, and if refused."),
      channels: z.array(z.string()),
      silenceId: z
        .number()
        .int()
        .nullable()
        .describe("The silence that was added. Alerts with the same matchers get one."),
      detail: z.string().nullable(),
    }),
  ),
});

/** `POST /api/v1/alerts/act`: acknowledges, resolves or silences many alerts, each by itself. */
function addManyActs(app: FastifyInstance, { archive, clock, acts }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().post(
    "/api/v1/alerts/act",
    {
      config: { access: { scope: "act" }, refuses: [422] },
      schema: {
        tags: ["Alerts"],
        summary: "Acknowledge, resolve or silence many alerts",
        description:
          "Each alert is changed by itself, with its own audit entry. One that cannot be changed does not stop the others.",
        body: ManyBody,
        response: { 200: ManyAnswer },
      },
    },
    async ({ body: { act, ids, note = null, durationMinutes, scope }, caller }) => {
      if (act === "silence") requireSilence(note, durationMinutes);
      const seen = new Set<number>();
      for (const id of ids) {
        const row = await readAlert(archive, id);
        if (row !== null && maySee(caller, row.zoneId)) seen.add(id);
      }
      const silence = { durationMs: (durationMinutes ?? 0) * MINUTE_MS, scope, masked: known(caller).masked };
      const acted = await acts.actOnAlerts({
        act,
        alertIds: [...seen],
        note,
        atMs: clock(),
        silence,
        ...actOf(caller),
      });
      const hidden = [...new Set(ids)].filter((id) => !seen.has(id));
      return {
        items: [
          ...acted.map((one) => ({ ...one, channels: [...one.channels] })),
          ...hidden.map((id) => ({
            id,
            result: "refused" as const,
            state: null,
            channels: [],
            silenceId: null,
            detail: `There is no alert ${id}, or this key may not see it.`,
          })),
        ],
      };
    },
  );
}

/** @throws {Refusal} 422 */
function requireSilence(note: string | null, durationMinutes: number | undefined): void {
  const mistakes = [
    ...(note === null ? [{ field: "note", rule: "must say why the alerts are silenced" }] : []),
    ...(durationMinutes === undefined
      ? [{ field: "durationMinutes", rule: "must say how long the silences last, from 1 to 129600" }]
      : []),
  ];
  if (mistakes.length > 0) throw new Refusal(422, { slug: "invalid-silence", mistakes });
}

const MarkBody = z
  .strictObject({
    mark: z.enum(["attack", "noise"]),
    note: lineOf(500).optional().describe("A reason for the audit trail."),
  })
  .meta({ examples: [{ mark: "noise", note: "load test" }] });

/** `POST /api/v1/alerts/{id}/mark`: what `longwatch alerts mark` does. */
function addMark(app: FastifyInstance, { archive, clock, acts }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().post(
    "/api/v1/alerts/:id/mark",
    {
      config: { access: { scope: "act" }, refuses: [409] },
      schema: {
        tags: ["Alerts"],
        summary: "Mark an alert as attack or noise",
        description:
          "The hours of an attack leave the history that the rule's threshold is computed from; the hours of noise stay. A later mark replaces an earlier one.",
        params: z.object({ id: RowId }),
        body: MarkBody,
        response: {
          200: z.object({
            id: z.number().int(),
            mark: z.enum(["attack", "noise"]),
            before: z.enum(["attack", "noise"]).nullable(),
          }),
        },
      },
    },
    async ({ params: { id }, body: { mark, note = null }, caller }) => {
      await findAlert(archive, caller, id);
      const result = await acts.mark({ alertId: id, mark, note, atMs: clock(), ...actOf(caller) });
      if (result.kind === "unknown") throw notFound(`alert ${id}`);
      if (result.kind === "not-a-spike")
        throw new Refusal(409, {
          slug: "alert-without-spike",
          detail: `Alert ${id} has no spike that is kept. Only alerts about a rule can be marked.`,
        });
      return { id, mark, before: result.kind === "unchanged" ? mark : result.before };
    },
  );
}

function addAct(
  app: FastifyInstance,
  { archive, clock }: ApiDeps,
  { name, act, summary }: { name: "ack" | "resolve"; act: ApiActs["acknowledge"]; summary: string },
): void {
  app.withTypeProvider<ZodTypeProvider>().post(
    `/api/v1/alerts/:id/${name}`,
    {
      config: { access: { scope: "act" }, refuses: name === "ack" ? [409] : [] },
      schema: {
        tags: ["Alerts"],
        summary,
        params: z.object({ id: RowId }),
        body: Body,
        response: { 200: Answer },
      },
    },
    async ({ params: { id }, body, caller }) => {
      await findAlert(archive, caller, id);
      const { by, actor } = actOf(caller);
      const result = await act({ alertId: id, by, actor, note: body?.note ?? null, atMs: clock() });
      if (result.kind === "unknown") throw notFound(`alert ${id}`);
      if (name === "ack" && result.kind === "unchanged" && result.state === "resolved")
        throw new Refusal(409, {
          slug: "alert-resolved",
          detail: `Alert ${id} is already resolved. Only firing or acknowledged alerts can be acknowledged.`,
        });
      const channels = result.kind === "unchanged" ? [] : [...result.channels];
      return { id, state: result.state, result: result.kind, channels };
    },
  );
}
