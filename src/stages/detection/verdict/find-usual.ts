import { USUAL_DIMENSIONS, type UsualDimension } from "#model/kinds.ts";
import type { FirstUse, UsualValue } from "#model/usual-value.ts";
import { templateOf, templatesOf } from "./path-template.ts";

/** A value is usual once so many different days (of an ASN) or addresses had it. */
const NEEDED: Readonly<Record<UsualDimension, number>> = { asn: 5, ja4: 20, path: 3 };
/** Of each dimension: values that are kept in memory, and values that are returned; those that came first. */
const MOST_KNOWN = 50_000;
const MOST_USUAL = 5_000;

/**
 * Returns the values that enough different users had, each since the first use by the user that completed the number. The
 * uses are read once, in the order of days.
 */
export async function findUsual(days: AsyncIterable<readonly FirstUse[]>): Promise<UsualValue[]> {
  const known = new Map(USUAL_DIMENSIONS.map((one) => [one, new Map<string, Map<string, number>>()]));
  const note = ({ dimension, value, user, at }: FirstUse) => {
    const values = known.get(dimension);
    if (values === undefined || (values.size >= MOST_KNOWN && !values.has(value))) return;
    const users = values.get(value) ?? new Map<string, number>();
    values.set(value, users.set(user, Math.min(at, users.get(user) ?? at)));
  };
  for await (const uses of days)
    for (const use of uses) note(use.dimension === "path" ? { ...use, value: templateOf(use.value) } : use);
  const paths = [...(known.get("path") ?? [])];
  const slugged = templatesOf(paths.map(([template]) => template));
  for (const [template, users] of paths) {
    const value = slugged(template);
    if (value !== template) for (const [user, at] of users) note({ dimension: "path", value, user, at });
  }
  return Array.from(known, ([dimension, values]) =>
    Array.from(values, ([value, users]) => {
      const since = [...users.values()].sort((one, other) => one - other)[NEEDED[dimension] - 1];
      return since === undefined ? [] : [{ dimension, value, since }];
    })
      .flat()
      .sort((one, other) => one.since - other.since)
      .slice(0, MOST_USUAL),
  ).flat();
}
