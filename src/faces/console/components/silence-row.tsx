import { Link } from "wouter";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { Silence } from "../api/alert.ts";
import { useChange } from "../api/ask.ts";
import { useMay } from "../api/session.ts";
import { MATCHERS } from "../look/words.ts";
import { usePageLink } from "../state/url-state.ts";
import { useZoneTitle } from "../state/zones.ts";
import { Ago, Moment } from "./ago.tsx";
import { ChoiceMenu } from "./choice-menu.tsx";
import { Now } from "./panel.tsx";
import { Payload } from "./payload.tsx";
import { ActButton } from "./quiet-button.tsx";
import { Severity } from "./severity.tsx";
import classes from "./silence-row.module.css";
import { ProblemBox } from "./states.tsx";

const EXTENSIONS = { "1 hour": HOUR_MS, "8 hours": 8 * HOUR_MS, "1 day": DAY_MS, "7 days": 7 * DAY_MS };
/** Alerts that are named before the others are counted. */
const NAMED = 3;

/** A silence: what it matches, until when, who made it and why, what it mutes now; end it or extend it. */
export function SilenceRow({ silence }: { readonly silence: Silence }) {
  const { id, state, startsAt, expiresAt, createdBy, createdAt, reason, matchers, mutes } = silence;
  return (
    <li className={state === "expired" ? "lw-dim" : undefined}>
      <div>
        <b>{state}</b> · silence {id} · <MatcherText matchers={matchers} />
        <div>
          {state === "pending" ? (
            <>
              starts <Ago at={startsAt} />, ends <Moment at={expiresAt} />
            </>
          ) : (
            <>
              {state === "expired" ? "ended" : "ends"}{" "}
              <b>
                <Ago at={expiresAt} />
              </b>
              , <Moment at={expiresAt} />
            </>
          )}
        </div>
        <div className="lw-note">
          by <Payload prose text={createdBy} />: <Payload prose text={reason} /> · made{" "}
          <Moment at={createdAt} />
        </div>
        {mutes === null ? null : <Muted mutes={mutes} />}
      </div>
      {state === "expired" ? null : <Acts silence={silence} />}
    </li>
  );
}

/** The matchers of a silence, in words. The values may be text of requests. */
function MatcherText({ matchers }: Pick<Silence, "matchers">) {
  const zoneName = useZoneTitle();
  if (matchers === null) return <>its matchers cannot be read, so it mutes nothing</>;
  const parts = Object.entries(matchers).map(([name, values = []]) =>
    name === "zone"
      ? (values as number[]).map(zoneName).join(" or ")
      : `${MATCHERS[name] ?? name} ${values.join(" or ")}`,
  );
  return <Payload prose text={parts.join(" and ")} />;
}

function Muted({ mutes: { count, alerts } }: { readonly mutes: NonNullable<Silence["mutes"]> }) {
  const link = usePageLink();
  if (count === 0)
    return (
      <div className="lw-note">
        It mutes no unresolved alert <Now />.
      </div>
    );
  return (
    <div>
      It mutes <b>{count}</b> unresolved {count === 1 ? "alert" : "alerts"} <Now />:
      <ul className="lw-list">
        {alerts.slice(0, NAMED).map(({ id, severity, state, headline }) => (
          <li key={id}>
            <Severity severity={severity} state={state} />{" "}
            <Link href={link(`/alerts/${id}`)}>
              <Payload prose text={headline ?? `alert ${id}`} />
            </Link>
          </li>
        ))}
        {count > NAMED ? (
          <li className="lw-note">and {count - Math.min(NAMED, alerts.length)} less urgent</li>
        ) : null}
      </ul>
    </div>
  );
}

function Acts({ silence: { id, expiresAt } }: { readonly silence: Silence }) {
  const mayAct = useMay("act");
  const end = useChange("silences.expire");
  // Moves the end of the silence to a later time.
  const extend = useChange("silences.extend");
  if (!mayAct) return null;
  const extendBy = (ms: number) =>
    extend.mutate({ id: String(id), expiresAt: new Date(Date.parse(expiresAt) + ms).toISOString() });
  return (
    <div className={`lw-acts ${classes["acts"]}`}>
      <ChoiceMenu
        word="Extend"
        label={`Extend silence ${id}`}
        loading={extend.isPending}
        rightSection={null}
        items={Object.fromEntries(
          Object.entries(EXTENSIONS).map(([name, ms]) => [`by ${name}`, () => extendBy(ms)]),
        )}
      />
      <ActButton word="End now" label={`End now: silence ${id}`} change={end} input={{ id: String(id) }} />
      <ProblemBox thrown={end.error ?? extend.error} />
    </div>
  );
}
