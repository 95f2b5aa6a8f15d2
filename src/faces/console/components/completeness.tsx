import { many } from "#lib/format.ts";
import type { Completeness as Counts } from "../api/completeness.ts";

interface Props {
  /** Undefined while they are not known; then nothing is shown. */
  readonly of: Counts | undefined;
  /** Over so many zones the hours are counted: 24 hours of 2 zones are 48. */
  readonly zones: number;
}

/** Whether the numbers before it are complete: ` · 70 of 72 hours sealed, 2 open`. */
export function Completeness({ of, zones }: Props) {
  if (of === undefined) return null;
  const { sealed, searched, open, gap, unwatched } = of;
  const hours = sealed + searched + open + gap;
  if (hours === 0) return <span> · no hour is decided yet</span>;
  const rest = Object.entries({ searched, open, "before the first": unwatched }).filter(
    ([, count]) => count > 0,
  );
  return (
    <span>
      {" "}
      · {sealed} of {many(hours, "hour")}
      {zones > 1 ? ` of ${zones} zones` : ""} sealed
      {rest.map(([word, count]) => `, ${count} ${word}`)}
      {gap > 0 ? <span className="lw-fire">, {many(gap, "gap")}: counts are too low</span> : null}
    </span>
  );
}
