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
