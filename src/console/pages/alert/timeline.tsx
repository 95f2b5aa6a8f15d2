import type { AlertDetail } from "../../api/alert.ts";
import { Moment } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import classes from "./alert.module.css";

const REASONS: Readonly<Record<string, string>> = {
  first: "The alert fired",
  worse: "The alert got worse",
  repeat: "Repeated",
  advice: "Advice came",
  resolved: "The alert was resolved",
  acknowledged: "The alert was acknowledged",
};

/** A spike within 30 minutes of the resolve continues the alert, as `worse`. */
function describeReason(reason: string, before: string | undefined): string {
  return reason === "worse" && before === "resolved" ? "The alert fired again" : (REASONS[reason] ?? reason);
}

/** Every transition in order, who was notified of it, and what the channel answered. */
export function Timeline({ alert: { transitions, deliveries } }: { readonly alert: AlertDetail }) {
  return (
    <Panel title="Timeline" about={`${transitions.length} transitions`} flush>
      {transitions.map(({ transition, at, reason, severity, by, note, silencedBy }, index) => (
        <div key={transition} className={classes["transition"]}>
          <span className="lw-note">
            <Moment at={at} seconds />
          </span>
          <div>
            {describeReason(reason, transitions[index - 1]?.reason)}
            {severity === null ? "" : ` (${severity})`}
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
            {silencedBy === null ? null : <div className="lw-note">muted by silence {silencedBy}</div>}
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
          </div>
        </div>
      ))}
    </Panel>
  );
}
