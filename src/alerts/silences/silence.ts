import { z } from "zod";
import { Matchers, type SilencedAlert, toSilencedAlert, wouldMute } from "#alerts/rules/silence.ts";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import type { AlertRow } from "#db/alerts/alerts.ts";
import { readSilence, type SilenceRow } from "#db/alerts/silences.ts";
import type { Queryable } from "#db/client.ts";
import { toLine } from "#lib/text.ts";
import {
  SEVERITIES,
  SILENCE_STATES,
  type SilenceState,
  SUBJECT_KINDS,
  UNRESOLVED_STATES,
} from "#model/kinds.ts";
import { isAddressPattern } from "#model/subject.ts";
import type { Caller } from "#operations/caller.ts";
import { IsoTime, lineOf, Name, notFound, RulePattern, Text } from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { summariseAlert } from "../operations/mask-message.ts";

/** The most alerts that silences are compared with. */
const MAX_ALERTS = 5_000;
/** The muted alerts that are named with a silence. */
const MUTED_SHOWN = 10;

const some = <Item extends z.ZodType>(item: Item, most = 100) => z.array(item).min(1).max(most).optional();
const oneOf = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, `must be one of ${words.join(", ")}`);

export const WantedMatchers = z
  .strictObject({
    zone: some(
      z
        .int("must be a shield zone's number")
        .min(1, "must be a shield zone's number")
        .max(2_147_483_647, "must be a shield zone's number"),
    ).describe("Mutes alerts of these shield zones."),
    rule: some(RulePattern).describe("Rule ids (942100), or families of rules (942*)."),
    severity: some(oneOf(SEVERITIES)).describe("Mutes alerts of these severities."),
    kind: some(oneOf(SUBJECT_KINDS)).describe(
      "Mutes alerts of these kinds. Only self mutes alerts of Longwatch about itself.",
    ),
    ip: some(
      z.string().refine(isAddressPattern, "must be an address or a network such as 198.51.100.0/24"),
    ).describe("Addresses or networks: of a source that fires, or of most of the alert's events."),
    asn: some(lineOf(300)).describe("Networks (AS64500)."),
    country: some(lineOf(300)).describe("Countries."),
    ja4: some(lineOf(300)).describe("TLS fingerprints."),
    ua: some(lineOf(300)).describe("User agents; one may end in *."),
    url: some(lineOf(300)).describe("Paths; a path may end in *."),
  })
  .refine((matchers) => Object.keys(matchers).length > 0, {
    message: "must name zone, rule, severity, kind or a source: a silence for every alert is refused",
  })
  .refine(({ rule, kind }) => rule === undefined || kind?.every((one) => one === "self") !== true, {
    path: ["rule"],
    message: "must be left out with kind self: alerts of Longwatch about itself have no rule",
  })
  .describe("An alert must match every member. A member matches if one of its values matches.");

export const StoredMatchers = z.object({
  zone: z.array(z.int()).optional(),
  rule: z.array(Name).optional(),
  severity: z.array(Name).optional(),
  kind: z.array(Name).optional(),
  ip: z.array(Text).optional(),
  asn: z.array(Text).optional(),
  country: z.array(Text).optional(),
  ja4: z.array(Text).optional(),
  ua: z.array(Text).optional(),
  url: z.array(Text).optional(),
});

export const Silence = z
  .object({
    id: z.number().int(),
    state: z.enum(SILENCE_STATES),
    startsAt: IsoTime,
    expiresAt: IsoTime,
    createdAt: IsoTime,
    createdBy: Text,
    reason: Text,
    matchers: StoredMatchers.nullable().describe(
      "Null if the stored matchers cannot be read. Such a silence has no effect.",
    ),
    mutes: z
      .object({
        count: z.number().int(),
        alerts: z
          .array(
            z.object({
              id: z.number().int(),
              severity: z.enum(SEVERITIES),
              state: Name,
              headline: Text.nullable(),
            }),
          )
          .describe(`The ${MUTED_SHOWN} worst. The headlines may contain text from event logs. Escape them.`),
      })
      .nullable()
      .describe("The unresolved alerts that the silence mutes now; null if it is not active."),
  })
  .meta({ id: "Silence" });
export type Silence = z.infer<typeof Silence>;

/** The inputs of silences besides their rows. */
interface SilenceView extends Pick<Caller, "zoneIds"> {
  readonly now: number;
  /** The unresolved alerts that the caller may see, the worst first. */
  readonly unresolved: readonly { readonly row: AlertRow; readonly alert: SilencedAlert }[];
}

interface Viewing {
  readonly db: Queryable;
  readonly caller: Pick<Caller, "zoneIds">;
  readonly now: number;
}

/** Returns the silences as the caller sees them, with the alerts that they mute now. */
export async function describeSilences(
  { db, caller: { zoneIds }, now }: Viewing,
  rows: readonly SilenceRow[],
): Promise<Silence[]> {
  const isAny = rows.some((row) => silenceState(row, now) === "active");
  const alerts = isAny
    ? await listAlerts(db, { states: UNRESOLVED_STATES, zoneIds, sort: "worst", limit: MAX_ALERTS })
    : [];
  const unresolved = alerts.map((row) => ({ row, alert: toSilencedAlert(row) }));
  return rows.map((row) => toSilence(row, { zoneIds, now, unresolved }));
}

export async function describeSilence(viewing: Viewing, row: SilenceRow): Promise<Silence> {
  const [silence] = await describeSilences(viewing, [row]);
  return silence as Silence;
}

function toSilence(row: SilenceRow, view: SilenceView): Silence {
  const { id, createdBy, reason, startsAt, expiresAt, createdAt } = row;
  const matchers = Matchers.safeParse(row.matchers).data ?? null;
  const state = silenceState(row, view.now);
  return {
    id,
    state,
    startsAt: startsAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    createdAt: createdAt.toISOString(),
    createdBy,
    reason,
    matchers: matchers === null ? null : hideForeign(matchers, view.zoneIds),
    mutes: matchers === null || state !== "active" ? null : listMuted(matchers, view),
  };
}

function silenceState({ startsAt, expiresAt }: SilenceRow, now: number): SilenceState {
  if (expiresAt.getTime() <= now) return "expired";
  return startsAt.getTime() <= now ? "active" : "pending";
}

function listMuted(matchers: Matchers, { unresolved }: SilenceView) {
  const muted = unresolved.filter(({ alert }) => wouldMute(matchers, alert));
  const alerts = muted.slice(0, MUTED_SHOWN).map(({ row }) => {
    const { id, severity, state, headline } = summariseAlert(row);
    return { id, severity, state, headline };
  });
  return { count: muted.length, alerts };
}

/** Leaves out zones that the caller may not see. */
function hideForeign(matchers: Matchers, zoneIds: Caller["zoneIds"]): Matchers {
  if (zoneIds === null || matchers.zone === undefined) return matchers;
  return { ...matchers, zone: matchers.zone.filter((zone) => zoneIds.includes(zone)) };
}

/** @throws {Refusal} 404 if there is no such silence, or it mutes alerts of no zone that the caller may see */
export async function findSilence(
  db: Queryable,
  { zoneIds }: Pick<Caller, "zoneIds">,
  id: number,
): Promise<SilenceRow> {
  const row = await readSilence(db, id);
  const zones = zonesOf(row) ?? zoneIds;
  if (row === null || (zoneIds !== null && zones?.some((zone) => zoneIds.includes(zone)) !== true))
    throw notFound(`silence ${id}`);
  return row;
}

/** Returns the zones that the silence names. */
export function zonesOf(row: SilenceRow | null): readonly number[] | undefined {
  return Matchers.safeParse(row?.matchers).data?.zone;
}

/**
 * A key for some zones silences only alerts of these zones.
 * @throws {Refusal} 403
 */
export function refuseForeign(
  { zoneIds }: Pick<Caller, "zoneIds">,
  zones: readonly number[] | undefined,
): void {
  if (zoneIds === null || zones?.every((zone) => zoneIds.includes(zone)) === true) return;
  throw new Refusal(403, {
    detail: `This key is for zone ${zoneIds.join(", ")} only. A silence made with this key must name zones, and no other zones than these.`,
  });
}

/**
 * Returns the wanted matchers, each value once. Refuses a masked key's question about whole addresses, because the number
 * of alerts that match would reveal the hidden part.
 * @throws {Refusal} 422
 */
export function readMatchers(wanted: z.infer<typeof WantedMatchers>, { masked }: Caller): Matchers {
  if (masked && wanted.ip !== undefined) {
    const rule = "cannot be tried with a key that sees masked addresses";
    throw new Refusal(422, { mistakes: [{ field: "matchers.ip", rule }] });
  }
  const set = Object.entries(wanted).filter(([, values]) => values !== undefined);
  return Object.fromEntries(set.map(([name, values]) => [name, [...new Set<unknown>(values)]])) as Matchers;
}

/** Returns the matchers in words, such as `zone 101 and rule 942100 or 941*`. */
export function describeMatchers(matchers: Silence["matchers"]): string {
  if (matchers === null) return "(mutes nothing: its matchers cannot be read)";
  return Object.entries(matchers)
    .map(
      ([name, values]) => `${name} ${(values ?? []).map((value) => toLine(String(value), 60)).join(" or ")}`,
    )
    .join(" and ");
}
