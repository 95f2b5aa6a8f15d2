import { z } from "zod";
import { canMatchRules } from "#alerts/rules/silence.ts";
import { type Caller, maySeeZone } from "./caller.ts";
import { Refusal } from "./refusal.ts";

/** The largest that a JSON number and a bigint column share, less what could overflow on the way. */
const MAX_ROW_ID = 999_999_999_999_999;
const MAX_ZONE_ID = 2_147_483_647;
/** The end of 9999-12-30. Postgres, JSON and Atom can all write times up to a day later. */
const LAST_MS = 253_402_214_399_999;

/** The number of a row in a body. `what` is an alert, a silence. */
export function RowNumber(what: string) {
  const rule = `must be the number of ${what}`;
  return z.int(rule).min(1, rule).max(MAX_ROW_ID, rule);
}

const digits = z.string().regex(/^\d{1,15}$/, "must be a whole number");

/** The number of a row, in a path. */
export const RowId = digits
  .transform(Number)
  .refine((id) => id >= 1 && id <= MAX_ROW_ID, `must be a whole number from 1 to ${MAX_ROW_ID}`)
  .meta({ wire: { type: "integer", minimum: 1 } });

/** The id of a shield zone in a body. */
export const ZoneNumber = z.int().min(1).max(MAX_ZONE_ID);

export const ZoneId = digits
  .transform(Number)
  .refine((id) => id >= 1 && id <= MAX_ZONE_ID, `must be the id of a shield zone, from 1 to ${MAX_ZONE_ID}`)
  .meta({ wire: { type: "integer", minimum: 1, maximum: MAX_ZONE_ID } })
  .describe("Id of the shield zone.");

const ZONES_PATTERN = "^(all|[0-9]+(,[0-9]+)*)$";

/** Zones of a question about several at once. */
export const ZoneIds = z
  .string()
  .max(4_000)
  .transform((text, context) => {
    if (text === "all") return "all" as const;
    const ids = text.split(",").map((id) => ZoneId.safeParse(id).data ?? Number.NaN);
    if (!ids.some(Number.isNaN)) return [...new Set(ids)];
    context.addIssue({
      code: "custom",
      message: "must be the id of a shield zone, several with commas, or all",
    });
    return z.NEVER;
  })
  .meta({ wire: { type: "string", pattern: ZONES_PATTERN } })
  .describe("Id of the shield zone, several with commas, or all: every zone that the key may see.");
export type AskedZones = z.output<typeof ZoneIds>;

/** Returns whether a member of an input names zones as `ZoneIds` does. */
export function namesZones(schema: z.core.$ZodType | undefined): boolean {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return namesZones(schema.unwrap());
  return schema !== undefined && z.globalRegistry.get(schema)?.wire?.["pattern"] === ZONES_PATTERN;
}

export const AccountName = z
  .string()
  .min(1)
  .max(63)
  .optional()
  .describe("Account of the platform: its zones are meant, in the place of `zone`.");

/** The zones of a list that is about every zone if none is named. */
export const ListZones = ZoneIds.optional().describe(
  "Id of the shield zone, several with commas, or all. Default: all.",
);

export const RuleId = z
  .string()
  .max(255)
  // Postgres keeps no NUL.
  .refine((id) => !id.includes("\0"), "must be the id of a rule")
  .meta({ masked: "open" })
  .describe("Id of the WAF rule; an empty text means events without a rule.");

const TIME_RULE = "must be an ISO 8601 time with a UTC offset (2026-11-21T14:00:00Z) or epoch milliseconds";

const RULE_PATTERN = "must be a rule's id, or a family such as 942*; a * may only be at the end";

/** A rule's id, or a family of rules. A pattern that can never match is refused. */
export const RulePattern = z
  .string()
  .min(1, RULE_PATTERN)
  .max(255, RULE_PATTERN)
  .refine((rule) => !rule.includes("\0") && rule.isWellFormed() && canMatchRules(rule), RULE_PATTERN);

/** A moment in a query, to epoch ms. */
export const Time = z
  .string()
  .max(40)
  .transform((text, context) => {
    const at = /^\d{1,15}$/.test(text) ? Number(text) : readIso(text);
    if (at >= 0 && at <= LAST_MS) return at;
    context.addIssue({ code: "custom", message: TIME_RULE });
    return z.NEVER;
  })
  .meta({ wire: { type: ["string", "integer"] }, time: true })
  .describe("An ISO 8601 time with a UTC offset, or epoch milliseconds.");

/**
 * NaN for anything else. Times as Longwatch prints them (`2026-11-27 20:51 UTC`) are accepted as well. A plus that was not percent-encoded arrives as a blank, which stands
 * nowhere else.
 */
function readIso(given: string): number {
  const printed = given.replace(/^(\d{4}-\d\d-\d\d) (?=\d\d:)/, "$1T").replace(/ UTC$/, "Z");
  const text = printed.replace(/ (?=\d\d:\d\d$)/, "+");
  const [, day = ""] = ISO.exec(text) ?? [];
  // What is parsed alone turns the 30th of February into the 2nd of March.
  const at = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day) ? Date.parse(text) : Number.NaN;
}

const ISO = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** A text of people or of events in an answer. A masked key sees its addresses shortened. */
export const Text = z.string().meta({ masked: "text" });

/** A name or a word in an answer that holds no address. */
export const Name = z.string().meta({ masked: "open" });

/** A moment in a body. */
export const Moment = z.iso.datetime({ offset: true, error: "must be an ISO 8601 time with a UTC offset" });

/** A moment in an answer. */
export const IsoTime = z.string().meta({ masked: "open" }).describe("An ISO 8601 time in UTC.");

export function toIso(at: number): string {
  return new Date(at).toISOString();
}

export function toIsoOrNull(at: number | null): string | null {
  return at === null ? null : toIso(at);
}

/** Words apart by commas, or the member more than once. */
export function oneOrMore<const Words extends readonly [string, ...string[]]>(words: Words) {
  const rule = `must be one or more of ${words.join(", ")}`;
  const word = z.enum(words, rule);
  const isKnown = (text: string): text is Words[number] => word.safeParse(text).success;
  return z
    .union([z.string().max(200), z.array(z.string().max(200)).max(20)])
    .transform((given, context) => {
      const named = [given].flat().flatMap((text) => text.split(","));
      if (named.every(isKnown)) return [...new Set(named)];
      context.addIssue({ code: "custom", message: rule });
      return z.NEVER;
    })
    .meta({ wire: { type: "array", items: { type: "string", enum: [...words] } } });
}

const After = z
  .string()
  .max(2_000)
  .optional()
  .describe("The `next` of the previous page. All other parameters must be unchanged.");

/** A whole number in a query. */
export function wholeNumber(least: number, most: number) {
  return digits
    .transform(Number)
    .refine((number) => number >= least && number <= most, `must be a whole number from ${least} to ${most}`)
    .meta({ wire: { type: "integer", minimum: least, maximum: most } });
}

/** The members of a query that ask for one page. */
export function pageQuery({ fallback, most }: { fallback: number; most: number }) {
  return {
    limit: wholeNumber(1, most)
      .default(fallback)
      .meta({ wire: { type: "integer", minimum: 1, maximum: most, default: fallback } })
      .describe("Maximum number of items on the page."),
    after: After,
  };
}

/** One page of a list. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    next: z
      .string()
      .nullable()
      .meta({ masked: "open" })
      .describe("Send this value as `after` to get the following page. Null on the last page."),
  });
}

/** Cuts what was read with one row more than the page holds. */
export function toPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
  sign: (last: Row) => string,
): { items: Item[]; next: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { items: shown.map(toItem), next: rows.length > limit && last !== undefined ? sign(last) : null };
}

/**
 * Returns the requested zones, or all zones that the caller may see (null is every zone).
 * @throws {Refusal} 403 for a zone of others.
 */
export function visibleZones(
  caller: Caller | null,
  zone: AskedZones | number | undefined,
): readonly number[] | null {
  const { zoneIds } = known(caller);
  if (zone === undefined || zone === "all") return zoneIds;
  const asked = [zone].flat();
  if (asked.every((one) => maySeeZone({ zoneIds }, one))) return asked;
  throw new Refusal(403, { detail: `This key is for zone ${zoneIds?.join(", ")} only.` });
}

/** Returns whether the caller may see a thing of this zone. A thing without a zone is for keys of every zone only. */
export function maySee(caller: Caller | null, zoneId: number | null): boolean {
  const { zoneIds } = known(caller);
  return zoneIds === null || (zoneId !== null && zoneIds.includes(zoneId));
}

/** Returns the caller of a route that is not public. */
export function known(caller: Caller | null): Caller {
  if (caller === null) throw new Error("a route with a scope was answered without a caller");
  return caller;
}

/**
 * Refuses a key for some zones, because the answer is about the whole service.
 * @throws {Refusal} 403
 */
export function requireEveryZone(caller: Caller | null): void {
  if (known(caller).zoneIds === null) return;
  throw new Refusal(403, {
    detail: "This key is for some zones only. The answer is about the whole service.",
  });
}

export function notFound(what: string): Refusal {
  return new Refusal(404, { detail: `There is no ${what}, or this key may not see it.` });
}

/** A short text of one line; hostile all the same. */
export function lineOf(maxChars: number) {
  return z
    .string()
    .trim()
    .max(maxChars)
    .refine(
      (text) => text !== "" && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text),
      `must be 1 to ${maxChars} characters on one line`,
    );
}
