import { DAY_MS } from "#lib/units.ts";
import { USUAL_DIMENSIONS, type UsualDimension } from "#model/kinds.ts";
import type { UsualValues, VerdictEvent } from "../verdict/evidence.ts";
import { templatesOf } from "../verdict/path-template.ts";

/** The different days (of an ASN) or addresses after which a value is usual. */
const NEEDED: Readonly<Record<UsualDimension, number>> = { asn: 5, ja4: 20, path: 3 };
/** Values of a dimension that are kept: those that came first. */
const MOST_VALUES = 50_000;

type Users = Map<string, Set<string | number>>;

/** Learns what is usual in a zone from events in the order of time, a UTC day at a time, as the service does at night. */
export function createUsualReplay() {
  const values: Record<UsualDimension, Users> = { asn: new Map(), ja4: new Map(), path: new Map() };
  let [days, today, hasCookies]: [number, number | null, boolean] = [0, null, false];
  let usual: UsualValues = learn();

  function learn(): UsualValues {
    const [asns, ja4s, paths] = USUAL_DIMENSIONS.map((dimension) =>
      usualOf(values[dimension], NEEDED[dimension]),
    );
    const named = usualOf(mergeNames(values.path), NEEDED.path);
    return {
      asns: asns ?? new Set(),
      ja4s: ja4s ?? new Set(),
      paths: new Set([...(paths ?? []), ...named]),
      days,
      hasCookies,
    };
  }

  function note(dimension: UsualDimension, value: string, user: string | number): void {
    const users = values[dimension].get(value);
    if (value === "" || user === "" || (users === undefined && values[dimension].size >= MOST_VALUES)) return;
    if (users === undefined) values[dimension].set(value, new Set([user]));
    else if (users.size < NEEDED[dimension]) users.add(user);
  }

  return {
    take({ at, ip, asn, ja4 }: VerdictEvent, template: string, hasSession: boolean): void {
      const day = Math.floor(at / DAY_MS);
      if (day !== today) {
        if (today !== null) {
          days += 1;
          usual = learn();
        }
        today = day;
      }
      note("asn", asn, day);
      note("ja4", ja4, ip);
      note("path", template, ip);
      hasCookies ||= hasSession;
    },
    /** What was usual when the day of the latest event began. */
    read: (): UsualValues => ({ ...usual, hasCookies }),
  };
}

function usualOf(users: Users, needed: number): Set<string> {
  return new Set([...users].flatMap(([value, { size }]) => (size >= needed ? [value] : [])));
}

/** Returns the templates in which names became `{slug}`, with the users of all names. */
function mergeNames(paths: Users): Users {
  const slugged = templatesOf(paths.keys());
  const merged: Users = new Map();
  for (const [template, users] of paths) {
    const value = slugged(template);
    if (value !== template) merged.set(value, new Set([...(merged.get(value) ?? []), ...users]));
  }
  return merged;
}
