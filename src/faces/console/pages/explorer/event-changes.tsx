import type { RevisedValue, useEventRevisions } from "../../api/event-revisions.ts";
import { Moment } from "../../components/ago.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { wordField } from "../../look/words.ts";
import classes from "./explorer.module.css";

const LONGEST = 500;

/** Shows the values of an event that later looks at the platform changed. An event without changes shows nothing. */
export function EventChanges({ query }: { readonly query: ReturnType<typeof useEventRevisions> }) {
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
      <dl className={classes["fields"]}>
        {data.values.map((value) => (
          <Change key={`${value.field} ${value.seenAt}`} value={value} />
        ))}
      </dl>
    </section>
  );
}

function Change({
  value: { field, before, after, route, seenAt, acceptedAt },
}: {
  readonly value: RevisedValue;
}) {
  return (
    <>
      <dt>{field === "message" ? field : wordField(field)}</dt>
      <dd>
        <div>
          <span className="lw-dim">{acceptedAt === null ? "stored " : "formerly "}</span>
          <Payload text={cap(before)} />
        </div>
        <div>
          <span className="lw-dim">{acceptedAt === null ? "shown " : "now "}</span>
          <Payload text={cap(after)} />
        </div>
        <div className="lw-dim">
          shown by the {route} since <Moment at={seenAt} seconds />
          {acceptedAt === null ? (
            "; stored after a second look confirms it"
          ) : (
            <>
              , stored <Moment at={acceptedAt} seconds />
            </>
          )}
        </div>
      </dd>
    </>
  );
}

function cap(text: string | null): string {
  if (text === null || text.length <= LONGEST) return text ?? "";
  return `${text.slice(0, LONGEST)}…`;
}
