import { useParams } from "wouter";
import { type AlertDetail, useAlert, useAlertContext } from "../api/queries.ts";
import { Compared } from "../components/compared.tsx";
import { AdviceText } from "../components/facts.tsx";
import { Panel } from "../components/panel.tsx";
import { PageEventsContext } from "../components/payload.tsx";
import { ProblemBox, QueryView } from "../components/states.tsx";
import { hasRule, toAlertEvents } from "../state/filters.ts";
import { useZoneTitle } from "../state/zones.ts";
import classes from "./alert/alert.module.css";
import { Attackers, MemberRules } from "./alert/attackers.tsx";
import { ExclusionPanel } from "./alert/exclusion.tsx";
import { Headline } from "./alert/headline.tsx";
import { AlertCurve, Samples } from "./alert/samples.tsx";
import { Episodes, Risen, Silences, Timeline } from "./alert/timeline.tsx";
import { VerdictPanel } from "./alert/verdict.tsx";

/** The story of one alert, from top to bottom. */
export default function AlertPage() {
  const { id } = useParams<{ id: string }>();
  const alert = useAlert(id);
  return (
    <div className="lw-page">
      <QueryView query={alert} rows={8} asking={`alert ${id}`}>
        {(found) => <Story key={found.id} alert={found} id={id} />}
      </QueryView>
    </div>
  );
}

function Story({ alert, id }: { readonly alert: AlertDetail; readonly id: string }) {
  const context = useAlertContext(id);
  return (
    <PageEventsContext value={toAlertEvents(alert)}>
      <div className={classes["story"]}>
        <Headline alert={alert} context={context.data} />
        <VerdictPanel alert={alert} />
        <ExclusionPanel alert={alert} />
        <Attackers alert={alert} />
        <MemberRules alert={alert} />
        {/* The counts by rule have no row for the incidents and the changes of a zone. */}
        {hasRule(alert) ? <AlertCurve alert={alert} during={context.data?.during ?? null} /> : null}
        <Compared
          context={hasRule(alert) ? context.data : undefined}
          evidence={alert.evidence}
          what="the alert"
        />
        <Samples alert={alert} />
        {context.error === null ? null : (
          <ProblemBox thrown={context.error} onRetry={() => void context.refetch()} />
        )}
        <Advice alert={alert} />
        <Timeline alert={alert} />
        {context.data === undefined ? null : (
          <div className="lw-columns">
            <Risen risen={context.data.risen} />
            <Episodes episodes={context.data.episodes} />
            <Silences silences={context.data.silences} />
          </div>
        )}
      </div>
    </PageEventsContext>
  );
}

/** The text may name sources that have nothing to do with the alert, because the platform answers about a rule. */
function Advice({ alert: { advice, ruleId, zoneId } }: { readonly alert: AlertDetail }) {
  const zoneName = useZoneTitle();
  if (advice === null) return null;
  const about =
    ruleId === null ? "" : `about rule ${ruleId === "" ? "(none)" : ruleId} in all of ${zoneName(zoneId)}; `;
  const { state, text, reason } = advice;
  return (
    <Panel title="Advice of the platform's AI" about={`${about}not verified, not applied`}>
      {state === "pending" ? (
        <span className="lw-dim">Asked, not received yet.</span>
      ) : (
        <AdviceText text={text ?? reason ?? "The platform gave no advice."} />
      )}
    </Panel>
  );
}
