import { formatAgo, formatMoment, formatUtc } from "../look/words.ts";
import { useNow } from "../state/now.tsx";

/** A time as its age. The exact time, here and in UTC, is in its title. */
export function Ago({ at }: { readonly at: string | number }) {
  const shownMs = useNow();
  const atMs = typeof at === "number" ? at : Date.parse(at);
  // The page's time moves in steps: what has happened since the last one is not in the future.
  const nowMs = Math.max(shownMs, Math.min(atMs, Date.now()));
  return (
    <time dateTime={new Date(atMs).toISOString()} title={exact(atMs)}>
      {formatAgo(atMs, nowMs)}
    </time>
  );
}

/** A time of the viewer's zone, with UTC in its title. */
export function Moment({
  at,
  seconds = false,
}: {
  readonly at: string | number;
  readonly seconds?: boolean;
}) {
  const atMs = typeof at === "number" ? at : Date.parse(at);
  return (
    <time dateTime={new Date(atMs).toISOString()} title={formatUtc(atMs)}>
      {formatMoment(atMs, { seconds })}
    </time>
  );
}

function exact(atMs: number): string {
  return `${formatMoment(atMs, { seconds: true })} here, ${formatUtc(atMs)}`;
}
