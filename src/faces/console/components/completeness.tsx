import type { Completeness as Counts } from "../api/completeness.ts";

interface Props {
  readonly of: Counts;
  /** Over so many zones the hours are counted: 24 hours of 2 zones are 48. */
  readonly zones: number;
}

/** Whether the numbers beside it are complete: `70 of 72 hours sealed, 2 open`. */
export function Completeness({ of, zones }: Props) {
  const { sealed, searched, open, gap, unwatched } = of;
  const hours = sealed + searched + open + gap;
  if (hours === 0) return <span>no hour is decided yet</span>;
  const unit = hours === 1 ? "hour" : "hours";
  const rest = [
    ...(searched > 0 ? [`${searched} searched`] : []),
    ...(open > 0 ? [`${open} open`] : []),
    ...(unwatched > 0 ? [`${unwatched} before the first`] : []),
  ];
  return (
    <span>
      {sealed} of {hours} {unit}
      {zones > 1 ? ` of ${zones} zones` : ""} sealed
      {rest.length > 0 ? `, ${rest.join(", ")}` : ""}
      {gap > 0 ? (
        <span className="lw-fire">
          , {gap} {gap === 1 ? "gap" : "gaps"}: counts are too low
        </span>
      ) : null}
    </span>
  );
}
