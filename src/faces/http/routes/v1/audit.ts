import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listAudit } from "#db/keys/audit-trail.ts";
import { IsoTime, pageOf, pageQuery, Time, toIso, toPage } from "#operations/fields.ts";
import { checkOrder } from "#operations/span.ts";
import type { ApiDeps } from "./api-deps.ts";

export const AuditItem = z
  .object({
    id: z.number().int(),
    at: IsoTime,
    actor: z.string(),
    action: z.string(),
    subject: z.string(),
    details: z.unknown(),
  })
  .meta({ id: "AuditEntry" });

/** `GET /api/v1/audit`: what `longwatch audit` prints. */
export function addAudit(app: FastifyInstance, { archive, cursors }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/audit",
    {
      config: { access: { scope: "admin" }, refuses: [422] },
      schema: {
        tags: ["Keys"],
        summary: "List the audit trail, newest first",
        querystring: z.strictObject({
          since: Time.optional(),
          until: Time.optional(),
          action: z
            .string()
            .regex(
              /^[a-z][a-z.-]{0,60}$/,
              "must be an action such as key.created, or the beginning of one with . at its end (key.)",
            )
            .optional(),
          ...pageQuery({ fallback: 50, most: 500 }),
        }),
        response: { 200: pageOf(AuditItem) },
      },
    },
    async ({ query: { since, until, action, limit, after } }) => {
      checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
      const list = `audit:${JSON.stringify([since, until, action])}`;
      const [beforeId] = cursors.readAfter(list, after) ?? [];
      const search = {
        since,
        until,
        action,
        beforeId: beforeId === undefined ? undefined : Number(beforeId),
      };
      const rows = await listAudit(archive, { ...search, limit: limit + 1 });
      return toPage(
        rows,
        limit,
        ({ id, at, actor, action, subject, details }) => ({
          id,
          at: toIso(at),
          actor,
          action,
          subject,
          details,
        }),
        ({ id }) => cursors.sign(list, [id]),
      );
    },
  );
}
