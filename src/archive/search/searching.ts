/** Plans a search, prices it and waits for its turn. */

import { z } from "zod";
import { estimateCost, readsPageOnly } from "#archive/rules/query/estimate-cost.ts";
import { planBody, splitMistake, type ZonesRequest } from "#archive/rules/query/read-search.ts";
import type { OpenedBlocks } from "#archive/rules/records/find-records.ts";
import { type ColumnChoice, refuseColumns, type WrittenColumns } from "#archive/rules/records/to-row.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import { countArchived, countStoredEvents, hasStoredEvents } from "#db/archive/archived-days.ts";
import { KeptFileError } from "#db/archive/kept-files.ts";
import type { Database, Queryable } from "#db/client.ts";
import { COLUMN_NAMES, FIELD_NAMES } from "#model/fields.ts";
import { EXPORT_FORMS, OPERATORS } from "#model/kinds.ts";
import type { OcsfSettings } from "#model/ocsf.ts";
import type { Caller } from "#operations/caller.ts";
import { Refusal } from "#operations/refusal.ts";

/** The sources of an answer: the events in Postgres and the files of archive days. */
export interface SearchDeps {
  readonly queries: Database;
  readonly files: ArchiveReader;
}

export function withoutKept<Deps extends SearchDeps>(deps: Deps): Deps {
  return { ...deps, files: deps.files.withoutKept() };
}

/** Runs a search, and once more without kept hours if a file of them has disappeared meanwhile. */
export async function orWithoutKept<T>(
  deps: SearchDeps,
  search: (deps: SearchDeps) => Promise<T>,
): Promise<T> {
  try {
    return await search(deps);
  } catch (thrown) {
    if (!(thrown instanceof KeptFileError)) throw thrown;
    return search(withoutKept(deps));
  }
}

interface SearchPrice {
  /** `quick`: pages, and whatever takes some ten milliseconds. `long`: everything else. */
  readonly kind: "quick" | "long";
  /** CPU time that it is expected to use in Postgres, which cannot be measured. */
  readonly postgresMs?: number;
}

export interface SearchWork extends SearchPrice {
  readonly signal: AbortSignal;
  /** Waits as long as necessary and is not refused: a part of an answer whose beginning was sent. */
  readonly isPatient?: boolean;
}

/** The means of a process to read many events. */
export interface Searching {
  readonly openedBlocks: OpenedBlocks;
  /** @throws when a question would read more rows than one may. */
  readonly refuseCostly: (estimate: { rows: number }) => void;
  readonly ocsf: OcsfSettings;
  /**
   * Runs the work once it is the caller's turn. Events in Postgres and in files can be read only there, because only there
   * `run` gets the means.
   */
  readonly runInPlace: <T>(
    asked: { readonly caller: Caller | null },
    work: SearchWork,
    run: (deps: SearchDeps, signal: AbortSignal) => Promise<T>,
  ) => Promise<T>;
}

/** A search of this cost takes some ten milliseconds. */
const QUICK_COST = 20_000;

/**
 * Returns which places of the admission queue a search needs, and its CPU time in Postgres. @throws if it costs more than
 * a question may.
 */
export async function priceSearch(
  db: Queryable,
  { refuseCostly }: Pick<Searching, "refuseCostly">,
  { zoneIds, plan }: Pick<ZonesRequest, "zoneIds" | "plan">,
): Promise<SearchPrice> {
  // To count first would take longer than the answer.
  if (readsPageOnly(plan)) return { kind: "quick" };
  const events = await countStoredEvents(db, zoneIds, plan);
  const archivedEvents = await countArchived(db, zoneIds, plan);
  const rows = Math.round(estimateCost(plan, { events, archivedEvents }));
  refuseCostly({ rows });
  const inPostgres = estimateCost(plan, { events: Math.max(0, events - archivedEvents), archivedEvents: 0 });
  return { kind: rows <= QUICK_COST ? "quick" : "long", postgresMs: inPostgres / 1_000 };
}

/** Limits of the platform's search language that the platform does not document. */
export const SEARCH_LIMITS =
  "A request may have at most 50 filters, 1,000 values in one filter, 10,000 characters in one text, and 256 KiB in total. `from` and `to` may reach back as far as Longwatch keeps events.";

export const SEARCH_SPAN = { from: 1_795_219_200_000, to: 1_795_262_400_000 };

export const ABOUT_SEARCH = `${SEARCH_LIMITS} A value that no event can have is refused. The method is in the records of events only: a filter or group by it is refused if the other filters find more than 10,000 events.`;

export const SearchedField = z
  .enum(FIELD_NAMES)
  .describe("The platform's names (ruleId, ip, asn, ua) are accepted, too.");

/** The members of a search or an export. They only document it: the rules of the search language name every mistake. */
export const SEARCH_WINDOW = {
  from: z.int().describe("Epoch ms."),
  to: z.int().describe("Epoch ms, after `from`. Events at `to` are not found."),
  query: z.string().nullish().describe("Text in address, rule, URL, user agent or message."),
  filters: z
    .array(
      z.object({
        field: SearchedField,
        op: z.enum(OPERATORS),
        value: z.array(z.string()).describe("One of the values must match."),
        not: z
          .boolean()
          .optional()
          .describe("Finds the events that the filter would not find without `not`."),
      }),
    )
    .nullish()
    .describe("All filters must match."),
};

/** The member of an export's body that chooses its form. */
export const EXPORT_FORMAT = z
  .enum(EXPORT_FORMS)
  .optional()
  .describe("Default: what the Accept header asks for. ocsf: one HTTP Activity of OCSF 1.8 per line.");

/** The members of a search or an export that choose the columns of its events. */
export const CHOSEN_COLUMNS = {
  columns: z
    .array(z.enum(COLUMN_NAMES))
    .min(1)
    .optional()
    .describe(
      "The columns of each event, instead of its usual members. An export has no status and matched.",
    ),
  timeZone: z.string().optional().describe("Of the column time, such as Europe/Amsterdam. Default: UTC."),
};

/**
 * Returns the columns that a body asks for; null without any.
 * @throws {Refusal} 400 for a column or a time zone that the answer cannot have; `beside` as in `refuseColumns`
 */
export function readColumns(
  { columns, timeZone }: WrittenColumns,
  asked: { readonly isExport: boolean; readonly beside: string | null },
): ColumnChoice | null {
  const refused = refuseColumns({ columns, timeZone }, asked);
  const mistakes = refused.map((mistake) => ({ ...mistake, rule: `must be ${mistake.rule}` }));
  if (mistakes.length > 0) throw new Refusal(400, { slug: "invalid-request", mistakes });
  return columns === undefined ? null : { columns, timeZone };
}

/**
 * Returns what a body with Longwatch's names of the fields asks for.
 * @throws {Refusal} 400 with everything that is wrong with the body, 404 for a zone that is not known and has no events
 */
export async function planNative(
  asked: {
    db: Queryable;
    /** Zones that are known even if none of their events is stored. */
    zoneIds: readonly number[];
    nowMs: number;
    retentionDays: number;
    isMasked: boolean;
  },
  { zoneIds, body, kind }: { zoneIds: readonly number[]; body: unknown; kind: "search" | "export" },
): Promise<ZonesRequest> {
  const read = planBody(body, asked, { kind, form: "native" });
  if ("mistakes" in read) {
    const mistakes = Object.entries(read.mistakes).flatMap(([field, texts]) =>
      texts.map((text) => splitMistake(field, text)),
    );
    throw new Refusal(400, { slug: "invalid-request", mistakes });
  }
  for (const zoneId of zoneIds)
    if (!asked.zoneIds.includes(zoneId) && !(await hasStoredEvents(asked.db, zoneId)))
      throw new Refusal(404, { detail: `Longwatch keeps no events of zone ${zoneId}.` });
  return { zoneIds, ...read };
}
