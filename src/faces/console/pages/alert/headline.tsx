import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useFields } from "#faces/console/components/forms.tsx";
import { formatDuration, formatNumber } from "#lib/format.ts";
import { describeQuery } from "#model/custom-condition.ts";
import type { StateAct } from "#model/kinds.ts";
import { isChangeKind } from "#model/rules.ts";
import { MUTE_WORDS } from "#model/words.ts";
import { type AlertContext, type AlertDetail, useAlertAct } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { SilencedBy } from "../../components/alert-lines.tsx";
import { ActionWord, Ago, Moment, Severity } from "../../components/facts.tsx";
import { PopoverForm } from "../../components/forms.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { hasRule, toAlertEvents, toExplorerParams } from "../../state/filters.ts";
import { usePageKeys } from "../../state/keys.ts";
import { usePageLink, useRuleLink } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { formatCount } from "../../style/words.ts";
import classes from "./alert.module.css";
import { SilenceDialog } from "./silence-dialog.tsx";

interface Props {
  readonly alert: AlertDetail;
  /** Not there until it was read. */
  readonly context: Pick<AlertContext, "during"> | undefined;
}

type Evidence = NonNullable<AlertContext["during"]>;

/** The headline, the state with its time, the silence in force, and the buttons. */
export function Headline({ alert, context }: Props) {
  const {
    id,
    state,
    severity,
    headline,
    zoneId,
    ruleId,
    ruleTitle,
    firedAt,
    resolvedAt,
    quietSince,
    acknowledgedBy,
    assignedTo,
    silence,
    incidentId,
    unsent,
    facts,
  } = alert;
  const zoneName = useZoneTitle();
  const link = usePageLink();
  const ruleLink = useRuleLink();
  const mayAct = useMay("act");
  const [isSilencing, setSilencing] = useState(false);
  const events = toAlertEvents(alert);
  const isOfRule = hasRule(alert);
  const isCounted = !isChangeKind(alert.kind) && alert.condition === null;
  usePageKeys(mayAct ? { s: () => setSilencing(true) } : {});
  return (
    <section className="lw-head" data-firing={state === "firing" || undefined}>
      <div className={classes["line"]}>
        <Severity severity={severity} state={state} />
        <span>
          alert {id} · {zoneName(zoneId)}
          {ruleId === null || !isOfRule ? "" : ` · rule ${ruleId === "" ? "(none)" : ruleId}`}{" "}
          {ruleTitle ?? ""}
        </span>
      </div>
      <h1 className={classes["title"]}>
        <Payload prose text={headline ?? `alert ${id}`} />
      </h1>
      <div className={classes["line"]}>
        <span>
          since{" "}
          <b>
            <Ago at={firedAt} />
          </b>
          , <Moment at={firedAt} seconds />
        </span>
        {resolvedAt === null ? null : (
          <span>
            resolved after <b>{formatDuration(Date.parse(resolvedAt) - Date.parse(firedAt))}</b>
          </span>
        )}
        {quietSince === null ? null : (
          <span>
            <b>quiet</b>, last active <Ago at={quietSince} />
          </span>
        )}
        {acknowledgedBy === null ? null : (
          <span>
            taken by{" "}
            <b>
              <Payload prose text={acknowledgedBy} />
            </b>
          </span>
        )}
        {assignedTo === null ? null : (
          <span>
            assigned to{" "}
            <b>
              <Payload prose text={assignedTo} />
            </b>
          </span>
        )}
        {silence === null ? null : (
          <span role="status">
            <SilencedBy silence={silence} />
          </span>
        )}
        {incidentId === null ? null : (
          <span role="status">
            <Link href={link(`/alerts/${incidentId}`)}>part of alert {incidentId}</Link>, which notifies
          </span>
        )}
        {unsent === null || incidentId !== null ? null : <span role="status">{MUTE_WORDS[unsent]}</span>}
        {alert.condition === null ? null : (
          <span>
            of <Payload prose text={describeQuery(alert.condition)} />
          </span>
        )}
        {facts === null || !isCounted ? null : (
          <>
            {isOfRule ? (
              <span>
                <b>{formatCount(facts.count)}</b> events in {facts.windowMinutes} min
              </span>
            ) : null}
            <span>
              usual in {facts.windowMinutes} min <b>{formatNumber(facts.usual)}</b>, threshold{" "}
              <b>{formatNumber(facts.threshold)}</b>, peak <b>{formatCount(facts.peak)}</b>
            </span>
          </>
        )}
      </div>
      {!isOfRule || ruleId === null ? null : (
        <div className={classes["line"]}>
          <CountedEvents context={context} />
        </div>
      )}
      <div className={classes["buttons"]}>
        {mayAct && state === "firing" ? <Act id={id} act="ack" word="Acknowledge" letter="a" /> : null}
        {mayAct ? (
          <Button size="xs" variant="default" onClick={() => setSilencing(true)}>
            Silence
          </Button>
        ) : null}
        {mayAct && state !== "resolved" ? <Act id={id} act="resolve" word="Resolve" /> : null}
        {mayAct && state !== "resolved" ? <Act id={id} act="assign" word="Assign" /> : null}
        {mayAct ? <Act id={id} act="comment" word="Comment" /> : null}
        {events.filters.length === 0 ? null : (
          <Button
            size="xs"
            variant="subtle"
            component={Link}
            href={link("/explorer", toExplorerParams(events))}
          >
            See its events
          </Button>
        )}
        {zoneId === null || ruleId === null || !isOfRule ? null : (
          <Button size="xs" variant="subtle" component={Link} href={ruleLink(zoneId, ruleId)}>
            See its rule
          </Button>
        )}
        {alert.links.map(({ title, url }) => (
          <a key={url} href={/^https?:/.test(url) ? url : undefined} target="_blank" rel="noreferrer">
            <Payload prose text={title} />
          </a>
        ))}
      </div>
      {isSilencing ? <SilenceDialog alert={alert} onClose={() => setSilencing(false)} /> : null}
    </section>
  );
}

/** A line from the beginning: what is below it must not move when its numbers come. */
function CountedEvents({ context }: Pick<Props, "context">) {
  if (context === undefined) return "Its events are not counted yet.";
  return context.during === null ? "Its events are no longer kept." : <Counted during={context.during} />;
}

/** All events of the alert, by action. The lists below and the curve count the same ones. */
function Counted({ during: { from, to, total, sampled, top } }: { readonly during: Evidence }) {
  return (
    <span>
      <b>{formatCount(total)}</b> events from <Moment at={from} /> to <Moment at={to} />
      {top.actions.map(({ value, count }) => (
        <span key={value}>
          {" "}
          · <ActionWord action={value} /> <b>{formatCount(count)}</b>
        </span>
      ))}
      {sampled < total ? ` of the newest ${formatCount(sampled)}` : ""}
    </span>
  );
}

interface ActProps {
  readonly id: number;
  readonly act: StateAct | "assign" | "comment";
  readonly word: string;
  /** The key that opens it. */
  readonly letter?: string;
  /** Only this attacker of an incident. */
  readonly attacker?: string;
}

/** A button that asks for a note, which only a comment needs. What was typed stays if the request fails. */
export function Act({ id, act, word, letter, attacker }: ActProps) {
  const [isOpen, setOpen] = useState(false);
  const { values, text } = useFields({ note: "", to: "" });
  const [note, to] = [values.note.trim(), values.to.trim()];
  const send = useAlertAct(id);
  usePageKeys(letter === undefined ? {} : { [letter]: () => setOpen(true) });
  return (
    <PopoverForm
      word={word}
      button={{
        size: attacker === undefined ? "xs" : "compact-xs",
        variant: act === "ack" ? "filled" : "default",
      }}
      isOpen={isOpen}
      onToggle={setOpen}
      onSubmit={() =>
        send.mutate(
          { act, attacker, note, ...(to === "" ? {} : { to }) },
          { onSuccess: () => setOpen(false) },
        )
      }
    >
      {act !== "assign" ? null : (
        <TextInput size="xs" label="To (empty: to me)" maxLength={100} {...text("to")} />
      )}
      <TextInput
        size="xs"
        label={act === "comment" ? "Comment" : "Note for the others (may stay empty)"}
        required={act === "comment"}
        maxLength={500}
        {...text("note")}
      />
      {send.error === null ? null : <ProblemBox thrown={send.error} />}
      <Button type="submit" size="xs" loading={send.isPending}>
        {word}
      </Button>
    </PopoverForm>
  );
}
