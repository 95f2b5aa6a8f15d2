import { type Output, useOperation } from "../../api/ask.ts";
import type { EventRow } from "../../api/search.ts";
import { Moment } from "../../components/ago.tsx";
import { Pairs } from "../../components/pairs.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { wordField } from "../../look/words.ts";

const LONGEST = 500;

/** Shows the values of an event that later looks at the platform changed. An event without changes shows nothing. */
export function EventChanges({ event: { zoneId, logId, timestamp } }: { readonly event: EventRow }) {
  const query = useOperation(
    "events.revisions",
    { zone: zoneId, logId, at: timestamp },
    { placeholderData: () => undefined },
  );
  const { data, error } = query;
  if (error !== null) return <ProblemBox thrown={error} onRetry={() => void query.refetch()} />;
  if (data === undefined || (data.withdrawnSince === null && data.values.length === 0)) return null;
  return (
    <section data-changes>
      <h3>Changes on the platform</h3>
      {data.withdrawnSince === null ? null : (
        <p className="lw-warn">
          The platform no longer shows this event since <Moment at={data.withdrawnSince} seconds />.
        </p>
      )}
      <Pairs
        of={data.values.map((value) => [
          value.field === "message" ? value.field : wordField(value.field),
          <Change key={value.seenAt} value={value} />,
        ])}
      />
    </section>
  );
}

type RevisedValue = Output<"events.revisions">["values"][number];

function Change({ value: { before, after, route, seenAt, acceptedAt } }: { readonly value: RevisedValue }) {
  const [was, is] = acceptedAt === null ? ["stored ", "shown "] : ["formerly ", "now "];
  return (
    <>
      <div>
        <span className="lw-dim">{was}</span>
        <Payload text={cap(before)} />
      </div>
      <div>
        <span className="lw-dim">{is}</span>
        <Payload text={cap(after)} />
      </div>
      <div className="lw-dim">
        shown by the {route} since <Moment at={seenAt} seconds />
        {acceptedAt === null ? "; stored after a second look confirms it" : null}
        <Moment say=", stored " at={acceptedAt} seconds />
      </div>
    </>
  );
}

function cap(text: string | null): string {
  if (text === null || text.length <= LONGEST) return text ?? "";
  return `${text.slice(0, LONGEST)}…`;
}
