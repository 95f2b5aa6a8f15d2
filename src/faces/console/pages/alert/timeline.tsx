/** What happened to an alert, and what happened before. */

import { Link } from "wouter";
import { formatDuration, many } from "#lib/format.ts";
import { describeUnsent } from "#model/words.ts";
import type { AlertContext, AlertDetail } from "../../api/queries.ts";
import { SilenceRow } from "../../components/alert-lines.tsx";
import { Moment } from "../../components/facts.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty } from "../../components/states.tsx";
import { usePageLink, useRuleLink } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { formatCount } from "../../style/words.ts";
import classes from "./alert.module.css";

const REASONS: Readonly<Record<string, string>> = {
  first: "The alert fired",
  join: "New attackers",
  again: "A second wave began",
  worse: "The alert got worse",
  repeat: "Repeated",
  advice: "Advice came",
  turned: "The verdict changed",
  verdict: "The verdict changed",
  settled: "The alert was resolved: what rose goes on and is usual now",
  resolved: "The alert was resolved",
  acknowledged: "The alert was acknowledged",
  assigned: "The alert was assigned",
  commented: "A comment",
};

/** A spike within 30 minutes of the resolve continues the alert, as `worse`. */
function describeReason(reason: string, before: string | undefined): string {
  return reason === "worse" && before === "resolved" ? "The alert fired again" : (REASONS[reason] ?? reason);
}

type Entry =
  | {
      readonly at: string;
      readonly transition: AlertDetail["transitions"][number];
      readonly before: string | undefined;
    }
  | { readonly at: string; readonly silence: AlertDetail["silenced"][number]; readonly isEnd: boolean }
  | { readonly at: string; readonly clause: string; readonly isFollowed: boolean };

/**
 * Every transition in order, who was notified of it, what the channel answered; when the alert was silenced; and when an
 * exclusion was proposed and followed.
 */
export function Timeline({ alert }: { readonly alert: AlertDetail }) {
  const { transitions, silenced, deliveries, exclusions } = alert;
  const entries: Entry[] = [
    ...transitions.map((transition, index) => ({
      at: transition.at,
      transition,
      before: transitions[index - 1]?.reason,
    })),
    ...silenced.flatMap((silence) => [
      { at: silence.from, silence, isEnd: false },
      ...(silence.to === null ? [] : [{ at: silence.to, silence, isEnd: true }]),
    ]),
    ...exclusions.flatMap(({ clause, proposedAt, followedAt }) => {
      const followed = followedAt === null ? [] : [{ clause, at: followedAt, isFollowed: true }];
      return [{ clause, at: proposedAt, isFollowed: false }, ...followed];
    }),
  ].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  return (
    <Panel title="Timeline" about={many(transitions.length, "transition")} flush>
      {entries.map((entry) => (
        <div key={keyOf(entry)} className={classes["transition"]}>
          <span className="lw-note">
            <Moment at={entry.at} seconds />
          </span>
          <div>
            {"clause" in entry ? (
              <ExclusionEntry {...entry} />
            ) : "silence" in entry ? (
              <SilenceEntry {...entry} />
            ) : (
              <TransitionEntry {...entry} deliveries={deliveries} />
            )}
          </div>
        </div>
      ))}
    </Panel>
  );
}

function keyOf(entry: Entry): string {
  if ("clause" in entry) return `${entry.clause} ${entry.isFollowed}`;
  return "silence" in entry ? `${entry.silence.id} ${entry.isEnd}` : `${entry.transition.transition}`;
}

function ExclusionEntry({ clause, isFollowed }: Extract<Entry, { clause: string }>) {
  const what = isFollowed
    ? "The rule is silent where an exclusion was proposed: "
    : "An exclusion was proposed: ";
  return (
    <>
      {what}
      <Payload text={clause} />
    </>
  );
}

function SilenceEntry({ silence, isEnd }: Extract<Entry, { silence: unknown }>) {
  const { id, createdBy, reason, expiresAt, to } = silence;
  if (isEnd) return <>Silence {id} no longer muted the alert</>;
  return (
    <>
      Silenced by silence {id} of <Payload prose text={createdBy} />: <Payload prose text={reason} />
      {to === null ? (
        <div className="lw-note">
          in force until <Moment at={expiresAt} />
        </div>
      ) : null}
    </>
  );
}

interface TransitionProps {
  readonly transition: AlertDetail["transitions"][number];
  readonly before: string | undefined;
  readonly deliveries: AlertDetail["deliveries"];
}

function TransitionEntry({ transition: entry, before, deliveries }: TransitionProps) {
  const { transition, reason, severity, by, to, note } = entry;
  return (
    <>
      {describeReason(reason, before)}
      {severity === null ? "" : ` (${severity})`}
      {to === null ? null : to === "" ? " to nobody" : <Payload say=" to " prose text={to} />}
      {by === null ? null : (
        <>
          {" by "}
          <Payload prose text={by} />
        </>
      )}
      {note === null ? null : (
        <>
          : <Payload prose text={note} />
        </>
      )}
      {describeUnsent(entry).map((why) => (
        <div key={why} className="lw-note">
          <Payload prose text={why} />
        </div>
      ))}
      {deliveries
        .filter((delivery) => delivery.transition === transition)
        .map(({ channel, state, attempts, deliveredAt, nextAttemptAt, lastError }) => (
          <div key={channel} className={state === "dead" ? "lw-warn" : "lw-note"}>
            <Payload prose text={channel} />: {state}
            {deliveredAt === null ? null : (
              <>
                {" "}
                <Moment at={deliveredAt} seconds />
              </>
            )}
            {attempts > 1 ? `, ${attempts} attempts` : ""}
            {nextAttemptAt === null ? null : (
              <>
                , next attempt <Moment at={nextAttemptAt} seconds />
              </>
            )}
            {lastError === null ? null : (
              <>
                . The channel answered: <Payload prose text={lastError} />
              </>
            )}
          </div>
        ))}
    </>
  );
}

export function Risen({ risen }: Pick<AlertContext, "risen">) {
  const link = useRuleLink();
  const zoneName = useZoneTitle();
  return (
    <Panel title="Rose at the same time" flush>
      {risen.length === 0 ? <Empty>No other rule or zone rose.</Empty> : null}
      <ul className="lw-rows">
        {risen.map(({ zoneId, ruleId, ruleTitle, during, before }) => (
          <li key={`${zoneId} ${ruleId}`}>
            <Link href={link(zoneId, ruleId)}>
              {zoneName(zoneId)} · {ruleId === "" ? "(none)" : <Payload prose text={ruleId} />}{" "}
              {ruleTitle ?? ""}
            </Link>
            <span>
              {formatCount(before)} → <b>{formatCount(during)}</b>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function Episodes({ episodes }: Pick<AlertContext, "episodes">) {
  const link = usePageLink();
  return (
    <Panel title="Earlier alerts of this rule" flush>
      {episodes.length === 0 ? <Empty>This is the first alert of this rule.</Empty> : null}
      <ul className="lw-rows">
        {episodes.map(({ alertId, firedAt, resolvedAt, severity, mark, peak }) => (
          <li key={alertId}>
            <Link href={link(`/alerts/${alertId}`)}>
              <Moment at={firedAt} /> {severity ?? ""}
            </Link>
            <span className="lw-note">
              {resolvedAt === null
                ? "still open"
                : `lasted ${formatDuration(Date.parse(resolvedAt) - Date.parse(firedAt))}`}
              {peak === null ? "" : `, peak ${formatCount(peak)}`}
              {mark === null ? "" : `, marked as ${mark}`}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Silences that match the alert: those in force first, with their end, then those that are over. */
export function Silences({ silences }: Pick<AlertContext, "silences">) {
  const sorted = [...silences].sort(
    (one, other) => Number(one.state === "expired") - Number(other.state === "expired"),
  );
  return (
    <Panel title="Silences that match" about="now and before" flush>
      {sorted.length === 0 ? <Empty>No silence has ever matched this alert.</Empty> : null}
      <ul className="lw-rows">
        {sorted.map((silence) => (
          <SilenceRow key={silence.id} silence={silence} />
        ))}
      </ul>
    </Panel>
  );
}
