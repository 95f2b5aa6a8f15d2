import { formatAgo, formatMoment, formatUtc } from "../look/words.ts";
import { useNow } from "../state/now.tsx";

interface TimeProps {
  /** Without a time nothing is shown. */
  readonly at: string | number | null;
  /** The words before the time. */
  readonly say?: string;
}

/** A time as its age. The exact time, here and in UTC, is in its title. */
export function Ago({ at, say }: TimeProps) {
  const shownMs = useNow();
  if (at === null) return null;
  const atMs = toMs(at);
  // The page's time moves in steps: what has happened since the last one is not in the future.
  const nowMs = Math.max(shownMs, Math.min(atMs, Date.now()));
  const exact = `${formatMoment(atMs, { seconds: true })} here, ${formatUtc(atMs)}`;
  return (
    <>
      {say}
      <time dateTime={new Date(atMs).toISOString()} title={exact}>
        {formatAgo(atMs, nowMs)}
      </time>
    </>
  );
}

/** A time of the viewer's zone, with UTC in its title. */
export function Moment({ at, say, seconds = false }: TimeProps & { readonly seconds?: boolean }) {
  if (at === null) return null;
  const atMs = toMs(at);
  return (
    <>
      {say}
      <time dateTime={new Date(atMs).toISOString()} title={formatUtc(atMs)}>
        {formatMoment(atMs, { seconds })}
      </time>
    </>
  );
}

function toMs(at: string | number): number {
  return typeof at === "number" ? at : Date.parse(at);
}
