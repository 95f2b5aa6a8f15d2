import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listKnownSources, toKnownSource } from "#db/detection/known-sources.ts";
import { KNOWN_KINDS, type KnownSource } from "#model/known-source.ts";
import { isAddressPattern } from "#model/source-traits.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
import { Refusal } from "../../errors/refusal.ts";
import { type Caller, maySeeZone } from "../../keys/caller.ts";
import type { ApiDeps } from "./api-deps.ts";
import { actOf, IsoTime, known, lineOf, notFound, pageOf, RowId, Time, toIsoOrNull } from "./parts.ts";

const ADDRESS_RULE = "must be an address or a network such as 198.51.100.0/24";

const KnownSourceBody = z
  .strictObject({
    kind: z.enum(KNOWN_KINDS),
    pattern: lineOf(300).describe(
      "An address or a network, an ASN, a JA4, or a user agent that may end in *.",
    ),
    zone: z.number().int().min(1).max(2_147_483_647).optional().describe("Default: every zone."),
    reason: lineOf(500),
    until: Time.optional().describe("The time from which the source counts again. Default: never."),
  })
  .refine(({ kind, pattern }) => kind !== "ip" || isAddressPattern(pattern), {
    path: ["pattern"],
    message: ADDRESS_RULE,
  });

const KnownSourceItem = z
  .object({
    id: z.number().int().nullable().describe("Null: the source is in the configuration file."),
    kind: z.enum(KNOWN_KINDS),
    pattern: z.string(),
    zoneIds: z.array(z.number().int()).nullable().describe("Null: every zone."),
    reason: z.string(),
    until: IsoTime.nullable(),
    createdBy: z.string().nullable(),
  })
  .meta({ id: "KnownSource" });

/** `/api/v1/known-sources`: list, add and remove sources that raise no source alert. */
export function addKnownSources(app: FastifyInstance, deps: ApiDeps): void {
  const { archive, acts, clock, service } = deps;
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const tags = ["Alerts"];
  typed.get(
    "/api/v1/known-sources",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags,
        summary: "List known sources",
        description: "Those of the configuration file come first. All of them are on one page.",
        response: { 200: pageOf(KnownSourceItem) },
      },
    },
    async ({ caller }) => {
      const asking = known(caller);
      const rows = await listKnownSources(archive);
      const fromFile = service.alerting().detection.knownSources.map((one) => ({ one, id: null, by: null }));
      const stored = rows.map((row) => ({ one: toKnownSource(row), id: row.id, by: row.createdBy }));
      const items = [...fromFile, ...stored].flatMap((found) => toItem(found, asking));
      return { items, next: null };
    },
  );
  typed.post(
    "/api/v1/known-sources",
    {
      config: { access: { scope: "act" }, refuses: [422] },
      schema: {
        tags,
        summary: "Add a known source",
        description:
          "The source series leave the events of a known source out from the next tick on. Rules are counted as before.",
        body: KnownSourceBody,
        response: { 201: KnownSourceItem },
      },
    },
    async ({ body: { kind, pattern, zone, reason, until }, caller }, reply) => {
      const asking = known(caller);
      refuseForeign(asking, zone === undefined ? null : [zone]);
      refuseAddress(asking, kind, pattern);
      if (until !== undefined && until <= clock())
        throw new Refusal(422, {
          slug: "invalid-known-source",
          mistakes: [{ field: "until", value: new Date(until).toISOString(), rule: "must be in the future" }],
        });
      const { by, actor } = actOf(caller);
      const expiresAt = until === undefined ? null : new Date(until);
      const wanted = { kind, pattern, zoneId: zone ?? null, reason, expiresAt, createdBy: by };
      const row = await acts.addKnownSource(wanted, actor);
      const [item] = toItem({ one: toKnownSource(row), id: row.id, by }, asking);
      return reply.code(201).send(item as z.infer<typeof KnownSourceItem>);
    },
  );
  typed.delete(
    "/api/v1/known-sources/:id",
    {
      config: { access: { scope: "act" } },
      schema: {
        tags,
        summary: "Remove a known source",
        params: z.object({ id: RowId }),
        response: { 200: z.object({ id: z.number().int(), result: z.literal("removed") }) },
      },
    },
    async ({ params: { id }, caller }) => {
      const asking = known(caller);
      const row = (await listKnownSources(archive)).find((one) => one.id === id);
      const zoneIds = row === undefined ? null : toKnownSource(row).zoneIds;
      if (row === undefined || !isSeen(zoneIds, asking)) throw notFound(`known source ${id}`);
      refuseForeign(asking, zoneIds);
      if ((await acts.removeKnownSource(id, actOf(caller).actor)) === null)
        throw notFound(`known source ${id}`);
      return { id, result: "removed" as const };
    },
  );
}

interface Found {
  readonly one: KnownSource;
  readonly id: number | null;
  readonly by: string | null;
}

function toItem({ one, id, by }: Found, caller: Caller): z.infer<typeof KnownSourceItem>[] {
  if (!isSeen(one.zoneIds, caller)) return [];
  const show = (text: string) => (caller.masked ? maskText(text) : text);
  return [
    {
      id,
      kind: one.kind,
      pattern: show(one.pattern),
      // Which other zones a source is for is none of the caller's business.
      zoneIds: one.zoneIds?.filter((zone) => maySeeZone(caller, zone)) ?? null,
      reason: show(one.reason),
      until: toIsoOrNull(one.untilMs),
      createdBy: by === null ? null : show(by),
    },
  ];
}

function isSeen(zoneIds: readonly number[] | null, caller: Caller): boolean {
  return zoneIds === null || zoneIds.some((zone) => maySeeZone(caller, zone));
}

/** A masked key may not ask about whole addresses, and an alert without the source would answer. */
function refuseAddress({ masked }: Caller, kind: KnownSource["kind"], pattern: string): void {
  if (!masked || (kind !== "ip" && maskText(pattern) === pattern)) return;
  const rule = "cannot be an address with a key that sees masked addresses";
  throw new Refusal(422, { slug: "invalid-known-source", mistakes: [{ field: "pattern", rule }] });
}

/** A key for some zones names sources of those zones only. */
function refuseForeign(caller: Caller, zoneIds: readonly number[] | null): void {
  if (caller.zoneIds === null || zoneIds?.every((zone) => maySeeZone(caller, zone)) === true) return;
  throw new Refusal(403, {
    detail: `This key is for zone ${caller.zoneIds.join(", ")} only. A known source that is added or removed with this key must be of one of these zones.`,
  });
}
