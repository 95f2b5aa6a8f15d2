import type { ReactNode } from "react";
import { MUTE_WORDS, sayOdds } from "#model/words.ts";
import type { Alert } from "../api/alert.ts";
import { hasRule } from "../pages/alert/event-filter.ts";
import { useZoneTitle } from "../state/zones.ts";
import { Ago } from "./ago.tsx";
import { Payload } from "./payload.tsx";
import { SilencedBy } from "./silenced-by.tsx";

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
        {verdict === null ? "" : ` (${sayOdds(verdict.odds)})`}
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
