import { USUAL_DIMENSIONS, type UsualDimension } from "#model/kinds.ts";
import type { FirstUse, UsualValue } from "#model/stored-sources.ts";
import { templateOf, templatesOf } from "./path-template.ts";

/** A value is usual once so many different days (of an ASN) or addresses had it. */
const NEEDED: Readonly<Record<UsualDimension, number>> = { asn: 5, ja4: 20, path: 3 };
/** Values of each dimension that are kept in memory, and values that are returned: those that came first. */
const MOST_KNOWN = 50_000;
const MOST_USUAL = 5_000;

/** The first users of each value, with the time of the first use. */
type Values = Map<string, Map<string, number>>;

/** Keeps the first users of values. Uses come in the order of time, so later users of a value change nothing. */
export function createUses() {
  const known: Record<UsualDimension, Values> = { asn: new Map(), ja4: new Map(), path: new Map() };
  return {
    /** Takes a use. The value of a path is its template. */
    note({ dimension, value, user, at }: FirstUse): void {
      const values = known[dimension];
      const users = values.get(value);
      if (value === "" || user === "" || (users === undefined && values.size >= MOST_KNOWN)) return;
      if (users === undefined) values.set(value, new Map([[user, at]]));
      else if (users.size < NEEDED[dimension] && !users.has(user)) users.set(user, at);
    },
    /** Returns the values that enough users had, each since the first use by the user that completed the number. */
    find(): UsualValue[] {
      return USUAL_DIMENSIONS.flatMap((dimension) =>
        Array.from(dimension === "path" ? withNames(known.path) : known[dimension], ([value, users]) => {
          const since = [...users.values()].sort((one, other) => one - other)[NEEDED[dimension] - 1];
          return since === undefined ? [] : [{ dimension, value, since }];
        })
          .flat()
          .sort((one, other) => one.since - other.since)
          .slice(0, MOST_USUAL),
      );
    },
  };
}

/** Returns the usual values of days, whose uses are read once and are in the order of time. */
export async function findUsual(days: AsyncIterable<readonly FirstUse[]>): Promise<UsualValue[]> {
  const known = createUses();
  for await (const uses of days)
    for (const use of uses)
      known.note(use.dimension === "path" ? { ...use, value: templateOf(use.value) } : use);
  return known.find();
}

/** Returns the templates with those in which names became `{slug}`, which have the users of all names. */
function withNames(paths: Values): Values {
  const slugged = templatesOf(paths.keys());
  const named: Values = new Map();
  for (const [template, users] of paths) {
    const value = slugged(template);
    if (value === template) continue;
    const all = named.get(value) ?? new Map(paths.get(value));
    for (const [user, at] of users) all.set(user, Math.min(at, all.get(user) ?? at));
    named.set(value, all);
  }
  return new Map([...paths, ...named]);
}
