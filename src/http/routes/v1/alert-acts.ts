import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { Refusal } from "../../errors/refusal.ts";
import { ALERT_STATES } from "./alert-schemas.ts";
import { findAlert } from "./alerts.ts";
import type { ApiActs, ApiDeps } from "./api-deps.ts";
import { actOf, lineOf, notFound, RowId } from "./parts.ts";

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
