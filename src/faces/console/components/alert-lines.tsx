/** Alerts and silences in a list. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { formatOdds, MUTE_WORDS } from "#model/words.ts";
import { useChange } from "../api/ask.ts";
import type { Alert, Silence } from "../api/queries.ts";
import { useMay } from "../api/session.ts";
import { hasRule } from "../state/filters.ts";
import { usePageLink } from "../state/url-state.ts";
import { useZoneTitle } from "../state/zones.ts";
import { MATCHERS } from "../style/words.ts";
import { ActButton, ChoiceMenu } from "./buttons.tsx";
import { Ago, Moment, Severity } from "./facts.tsx";
import { Now } from "./panel.tsx";
import { Payload } from "./payload.tsx";
import classes from "./silence-row.module.css";
import { ProblemBox } from "./states.tsx";

interface Props {
  readonly alert: Alert;
  /** The headline, if it is a link. */
  readonly headline?: ReactNode;
  /** Text about the alert that follows its rule. */
  readonly about?: string;
  readonly after?: ReactNode;
}

/** Shows an alert in a list: headline, zone and rule, verdict, whether the alert is quiet now, and the reason why it is muted. */
export function AlertText({ alert, headline, about = "", after }: Props) {
  const { zoneId, ruleId, ruleTitle, kind, quietSince, silence, incidentId, unsent, verdict } = alert;
  const zoneName = useZoneTitle();
  const rule = ruleId === null || !hasRule({ kind }) ? "" : ` · rule ${ruleId === "" ? "(none)" : ruleId}`;
  return (
    <>
      {headline ?? <Payload prose text={headlineOf(alert)} />}
      <div className="lw-note">
        {zoneName(zoneId)}
        {rule} {ruleTitle ?? ""}
        {about}
        <Payload say=" · " prose bold text={verdict === null ? null : verdict.title} />
        {verdict === null ? "" : ` (${formatOdds(verdict.odds)})`}
        <Ago say=" · quiet, last active " at={quietSince} />
        {after}
      </div>
      {silence === null ? null : (
        <div className="lw-note">
          <SilencedBy silence={silence} />
        </div>
      )}
      {unsent === null || incidentId !== null ? null : <div className="lw-note">{MUTE_WORDS[unsent]}</div>}
    </>
  );
}

export function headlineOf({ id, headline }: Pick<Alert, "id" | "headline">): string {
  return headline ?? `alert ${id}`;
}

/** The silence that mutes an alert now: until when, by whom and why. */
export function SilencedBy({ silence }: { readonly silence: NonNullable<Alert["silence"]> }) {
  const link = usePageLink();
  const { id, expiresAt, createdBy, reason } = silence;
  return (
    <>
      <Link className="lw-underlined" href={link("/silences")} onClick={(event) => event.stopPropagation()}>
        silenced
      </Link>{" "}
      until{" "}
      <b>
        <Moment at={expiresAt} />
      </b>{" "}
      (<Ago at={expiresAt} />) by <Payload prose text={createdBy} />: <Payload prose text={reason} /> ·
      silence {id}
    </>
  );
}

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
