import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listAlerts } from "#db/alerting/alert-reports.ts";
import type { AlertRow } from "#db/alerting/alerts.ts";
import { pageSilences, readSilence, type SilenceRow } from "#db/alerting/silences.ts";
import type { Queryable } from "#db/client.ts";
import { MINUTE_MS } from "#lib/units.ts";
import {
  LASTING_SILENCE_STATES,
  SILENCE_ENDINGS,
  SILENCE_STATES,
  type SilenceState,
  UNRESOLVED_STATES,
} from "#model/kinds.ts";
import type { Caller } from "#operations/caller.ts";
import {
  actOf,
  known,
  notFound,
  oneOrMore,
  pageOf,
  pageQuery,
  RowId,
  toIso,
  toPage,
} from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { summariseAlert } from "#operations/summarise-alert.ts";
import { Matchers, type SilencedAlert, wouldMute } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";
import { maskNullable, maskText } from "#stages/archive/mask/mask-text.ts";
import type { ApiDeps, ApiSilence } from "./api-deps.ts";
import { MUTED_SHOWN, PlannedSilence, Silence, SilenceBody, type WantedMatchers } from "./silence-schemas.ts";

/** The most alerts that silences are compared with. */
const MAX_ALERTS = 5_000;
const MAX_MS = 90 * 24 * 60 * MINUTE_MS;
const END_RULE =
  "must be set as either durationMinutes or expiresAt, and lie between 1 minute and 90 days from now";

/** `/api/v1/silences`: list, add (or try with `?dryRun=true`), extend and end. */
export function addSilences(app: FastifyInstance, deps: ApiDeps): void {
  addList(app, deps);
  addShow(app, deps);
  addPost(app, deps);
  addPatch(app, deps);
  addDelete(app, deps);
}

function addList(app: FastifyInstance, { archive, clock, cursors }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/silences",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Silences"],
        summary: "List silences, newest first",
        querystring: z.strictObject({
          state: oneOrMore(SILENCE_STATES)
            .default([...LASTING_SILENCE_STATES])
            .describe(`Default: ${LASTING_SILENCE_STATES.join(", ")}.`),
          ...pageQuery({ fallback: 50, most: 200 }),
        }),
        response: { 200: pageOf(Silence) },
      },
    },
    async ({ query: { state, limit, after }, caller }) => {
      const asking = known(caller);
      const { zoneIds } = asking;
      const nowMs = clock();
      const list = `silences:${state.join()}`;
      const [beforeId] = cursors.readAfter(list, after) ?? [];
      const rows = await pageSilences(archive, {
        zoneIds,
        states: state,
        nowMs,
        beforeId: beforeId === undefined ? undefined : Number(beforeId),
        limit: limit + 1,
      });
      const view = await readSilenceView(archive, asking, rows, nowMs);
      const toItem = (row: SilenceRow) => toSilence(row, view);
      return toPage(rows, limit, toItem, ({ id }) => cursors.sign(list, [id]));
    },
  );
}

function addShow(app: FastifyInstance, { archive, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/silences/:id",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Silences"],
        summary: "Show one silence",
        params: z.object({ id: RowId }),
        response: { 200: Silence },
      },
    },
    async ({ params: { id }, caller }) => {
      const asking = known(caller);
      const { row } = await findSilence(archive, asking.zoneIds, id);
      return toSilence(row, await readSilenceView(archive, asking, [row], clock()));
    },
  );
}

/** @throws {Refusal} 404 where there is none, or none of a zone that the caller may see. */
async function findSilence(archive: ApiDeps["archive"], zoneIds: Caller["zoneIds"], id: number) {
  const row = await readSilence(archive, id);
  const zones = Matchers.safeParse(row?.matchers).data?.zone;
  const isSeen = zoneIds === null || (zones ?? zoneIds).some((zone) => zoneIds.includes(zone));
  if (row === null || !isSeen) throw notFound(`silence ${id}`);
  return { row, zones };
}

function addPost(app: FastifyInstance, { acts, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().post(
    "/api/v1/silences",
    {
      config: { access: { scope: "act" }, refuses: [422] },
      schema: {
        tags: ["Silences"],
        summary: "Add a silence",
        description:
          "A silence keeps matching alerts from notifying channels. With dryRun=true nothing is stored, and the answer lists the alerts that the silence would match. Every other call adds a silence. If an answer is lost, read the list before you try again. A second, equal silence has no further effect.",
        querystring: z.strictObject({ dryRun: z.enum(["true", "false"]).default("false") }),
        body: SilenceBody,
        response: { 200: PlannedSilence, 201: PlannedSilence },
      },
    },
    async ({ query, body, caller }, reply) => {
      const { zoneIds } = known(caller);
      const { by, actor } = actOf(caller);
      const { matchers, reason } = body;
      refuseForeign(zoneIds, matchers.zone);
      const nowMs = clock();
      const durationMs = readDuration(body, nowMs);
      const wanted = {
        matchers: refuseAddresses(toMatchers(matchers), known(caller)),
        reason,
        durationMs,
        by,
        actor,
        nowMs,
      };
      if (query.dryRun === "true") return toPlanned(null, await acts.planSilence(wanted), zoneIds);
      const { id, ...added } = await acts.addSilence(wanted);
      return reply
        .code(201)
        .header("location", `/api/v1/silences/${id}`)
        .send(toPlanned(id, added, zoneIds));
    },
  );
}

function addPatch(app: FastifyInstance, { archive, acts, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().patch(
    "/api/v1/silences/:id",
    {
      config: { access: { scope: "act" }, refuses: [409, 422] },
      schema: {
        tags: ["Silences"],
        summary: "Move the end of a silence to a later time",
        params: z.object({ id: RowId }),
        body: z
          .strictObject({
            durationMinutes: SilenceBody.shape.durationMinutes,
            expiresAt: SilenceBody.shape.expiresAt,
          })
          .meta({ examples: [{ expiresAt: "2026-11-21T18:00:00Z" }, { durationMinutes: 120 }] }),
        response: { 200: Silence },
      },
    },
    async ({ params: { id }, body, caller }) => {
      const asking = known(caller);
      const { by, actor } = actOf(caller);
      const { zones } = await findSilence(archive, asking.zoneIds, id);
      refuseForeign(asking.zoneIds, zones);
      const nowMs = clock();
      const expiresAtMs = nowMs + readDuration(body, nowMs);
      const extended = await acts.extendSilence({ id, by, actor, expiresAtMs, nowMs });
      if (extended === "unknown") throw notFound(`silence ${id}`);
      if (extended === "over")
        throw new Refusal(409, {
          slug: "silence-over",
          detail: `Silence ${id} has ended. Add a new one.`,
        });
      if (extended === "earlier") {
        const rule = "must be later than the end that the silence has";
        const value = new Date(expiresAtMs).toISOString();
        throw new Refusal(422, { slug: "invalid-silence", mistakes: [{ field: "expiresAt", value, rule }] });
      }
      return toSilence(extended, await readSilenceView(archive, asking, [extended], nowMs));
    },
  );
}

function addDelete(app: FastifyInstance, { archive, acts, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().delete(
    "/api/v1/silences/:id",
    {
      config: { access: { scope: "act" } },
      schema: {
        tags: ["Silences"],
        summary: "End a silence now",
        params: z.object({ id: RowId }),
        response: { 200: z.object({ id: z.number().int(), result: z.enum(SILENCE_ENDINGS) }) },
      },
    },
    async ({ params: { id }, caller }) => {
      const { zoneIds } = known(caller);
      const { by, actor } = actOf(caller);
      const { zones } = await findSilence(archive, zoneIds, id);
      refuseForeign(zoneIds, zones);
      const result = await acts.endSilence({ id, by, actor, nowMs: clock() });
      if (result === "unknown") throw notFound(`silence ${id}`);
      return { id, result };
    },
  );
}

/** A key for some zones silences only there. */
function refuseForeign(zoneIds: Caller["zoneIds"], zones: readonly number[] | undefined): void {
  if (zoneIds === null || zones?.every((zone) => zoneIds.includes(zone)) === true) return;
  throw new Refusal(403, {
    detail: `This key is for zone ${zoneIds.join(", ")} only. A silence made with this key must name zones, and no other zones than these.`,
  });
}

function readDuration(
  { durationMinutes, expiresAt }: { durationMinutes?: number | undefined; expiresAt?: string | undefined },
  nowMs: number,
): number {
  const isOne = (durationMinutes === undefined) !== (expiresAt === undefined);
  const durationMs =
    expiresAt === undefined ? (durationMinutes ?? 0) * MINUTE_MS : Date.parse(expiresAt) - nowMs;
  if (isOne && durationMs >= MINUTE_MS && durationMs <= MAX_MS) return durationMs;
  const value = expiresAt ?? durationMinutes;
  const shown = value === undefined ? {} : { value: String(value) };
  throw new Refusal(422, {
    slug: "invalid-silence",
    detail: `The end of the silence ${END_RULE}.`,
    mistakes: [{ field: "expiresAt", ...shown, rule: END_RULE }],
  });
}

export function toMatchers(matchers: z.infer<typeof WantedMatchers>): Matchers {
  const set = Object.entries(matchers).filter(([, values]) => values !== undefined);
  return Object.fromEntries(set.map(([name, values]) => [name, [...new Set<unknown>(values)]])) as Matchers;
}

/** The inputs of a list's items besides their rows. */
export interface SilenceView extends Pick<Caller, "zoneIds" | "masked"> {
  readonly nowMs: number;
  /** The unresolved alerts that the caller may see, the worst first. */
  readonly unresolved: readonly { readonly row: AlertRow; readonly alert: SilencedAlert }[];
}

export async function readSilenceView(
  db: Queryable,
  { zoneIds, masked }: Pick<Caller, "zoneIds" | "masked">,
  silences: readonly SilenceRow[],
  nowMs: number,
): Promise<SilenceView> {
  const isAny = silences.some((row) => silenceState(row, nowMs) === "active");
  const rows = isAny
    ? await listAlerts(db, { states: UNRESOLVED_STATES, zoneIds, sort: "worst", limit: MAX_ALERTS })
    : [];
  return { zoneIds, masked, nowMs, unresolved: rows.map((row) => ({ row, alert: toSilencedAlert(row) })) };
}

function listMuted(matchers: Matchers, { unresolved, masked }: SilenceView) {
  const muted = unresolved.filter(({ alert }) => wouldMute(matchers, alert));
  const alerts = muted.slice(0, MUTED_SHOWN).map(({ row }) => {
    const { id, severity, state, headline } = summariseAlert(row);
    return { id, severity, state, headline: masked ? maskNullable(headline) : headline };
  });
  return { count: muted.length, alerts };
}

function silenceState(
  { startsAt, expiresAt }: { readonly startsAt: Date; readonly expiresAt: Date },
  nowMs: number,
): SilenceState {
  if (expiresAt.getTime() <= nowMs) return "expired";
  return startsAt.getTime() <= nowMs ? "active" : "pending";
}

export function toSilence(row: SilenceRow, view: SilenceView): z.infer<typeof Silence> {
  const { zoneIds, masked, nowMs } = view;
  const { id, createdBy, reason, startsAt, expiresAt, createdAt } = row;
  const matchers = Matchers.safeParse(row.matchers).data ?? null;
  const state = silenceState(row, nowMs);
  return {
    id,
    state,
    startsAt: startsAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    createdAt: createdAt.toISOString(),
    createdBy: masked ? maskText(createdBy) : createdBy,
    reason: masked ? maskText(reason) : reason,
    matchers: matchers === null ? null : hideAddresses(hideForeign(matchers, zoneIds), masked),
    mutes: matchers === null || state !== "active" ? null : listMuted(matchers, view),
  };
}

function hideAddresses(matchers: Matchers, masked: boolean): Matchers {
  return masked && matchers.ip !== undefined ? { ...matchers, ip: matchers.ip.map(maskText) } : matchers;
}

/**
 * Returns the matchers, unless they ask a masked key's question about whole addresses: the number of alerts that match
 * would tell the hidden part.
 */
export function refuseAddresses(matchers: Matchers, { masked }: Pick<Caller, "masked">): Matchers {
  if (!masked || matchers.ip === undefined) return matchers;
  const rule = "cannot be tried with a key that sees masked addresses";
  throw new Refusal(422, { mistakes: [{ field: "matchers.ip", rule }] });
}

/** Which other zones a silence names is none of the caller's business. */
function hideForeign(matchers: Matchers, zoneIds: Caller["zoneIds"]): Matchers {
  if (zoneIds === null || matchers.zone === undefined) return matchers;
  return { ...matchers, zone: matchers.zone.filter((zone) => zoneIds.includes(zone)) };
}

export function toPlanned(
  id: number | null,
  silence: ApiSilence,
  zoneIds: Caller["zoneIds"],
): z.infer<typeof PlannedSilence> {
  const { startsAt, expiresAt, matchers, alertIds, equalIds, ...rest } = silence;
  return {
    id,
    ...rest,
    startsAt: toIso(startsAt),
    expiresAt: toIso(expiresAt),
    matchers: hideForeign(matchers, zoneIds),
    alertIds: [...alertIds],
    equalIds: [...equalIds],
  };
}
