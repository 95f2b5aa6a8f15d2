import { type SQL, sql } from "drizzle-orm";
import { and, toClause } from "./search-condition.ts";
import { SEARCH_COLUMNS, type SearchDimension } from "./search-query.ts";

/** One group of a page; the rest of what is known of it names it by its place there, from 1. */
export interface GroupKey {
  readonly key: readonly string[];
  readonly total: number;
  /** Epoch ms. */
  readonly first: number;
  readonly last: number;
}

/** How many events of a group have one text in the column `kind`. */
export interface GroupTally {
  readonly at: number;
  readonly kind: string;
  readonly text: string;
  readonly total: number;
}

export interface GroupBucket {
  readonly at: number;
  readonly bucket: number;
  readonly total: number;
}

/** What is grouped by, as k0, k1, ... */
export function keyColumns(groupBy: readonly SearchDimension[]): SQL {
  return sql.raw(
    groupBy.map((name, index) => `coalesce(e.${SEARCH_COLUMNS[name]}, '') as k${index}`).join(", "),
  );
}

export function keyNames(groupBy: readonly SearchDimension[]): SQL {
  return sql.raw(groupBy.map((_, index) => `k${index}`).join(", "));
}

/** A page's groups as a table `w`, numbered from 1 by its column `at`. */
export function wantedKeys(groupBy: readonly SearchDimension[], keys: readonly GroupKey[]): SQL {
  const columns = groupBy.map(
    (_, index) => sql`${sql.param(keys.map(({ key }) => key[index] ?? ""))}::text[]`,
  );
  return sql`unnest(${sql.join(columns, sql`, `)}) with ordinality as w(${keyNames(groupBy)}, at)`;
}

/** Whether the event `e` is of the group `w`. */
export function isOfGroup(groupBy: readonly SearchDimension[]): SQL {
  const tests = groupBy.map((name, index) => `coalesce(e.${SEARCH_COLUMNS[name]}, '') = w.k${index}`);
  return sql.raw(tests.join(" and "));
}

/** What indexes of closed days can say of whether the event `e` is of any of these groups. */
export function mayBeOfGroup(groupBy: readonly SearchDimension[], keys: readonly GroupKey[]): SQL {
  const indexed = groupBy.flatMap((name, index) => {
    if (name !== "ip" && name !== "ja4") return [];
    const texts = [...new Set(keys.map(({ key }) => key[index] ?? ""))];
    return [toClause({ columns: [name], tests: [{ kind: "equals", texts }] })];
  });
  return indexed.length === 0 ? sql`true` : and(indexed);
}

/**
 * Orders texts as JavaScript does. Bytes of UTF-8 are in the same order but for characters beyond the first 65,536, which
 * UTF-16 writes with units below U+E000: so the lead bytes of U+E000 to U+FFFF are moved behind theirs.
 */
export function inCodeUnits(text: SQL): SQL {
  return sql`(case when octet_length(${text}) = char_length(${text}) then ${text} else
    translate(convert_from(convert_to(${text}, 'UTF8'), 'LATIN1'), ${"\u00EE\u00EF"}, ${"\u01F8\u01F9"})
    end) collate "C"`;
}

/** The order of groups: the largest first, those of one size by key, in code units. */
export function compareGroups(one: GroupKey, other: GroupKey): number {
  if (one.total !== other.total) return other.total - one.total;
  const at = one.key.findIndex((text, index) => text !== other.key[index]);
  return (one.key[at] ?? "") < (other.key[at] ?? "") ? -1 : 1;
}
