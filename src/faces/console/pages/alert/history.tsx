import { Link } from "wouter";
import { formatDuration } from "#lib/format.ts";
import type { AlertContext } from "../../api/alert.ts";
import { Moment } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { SilenceRow } from "../../components/silence-row.tsx";
import { Empty } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { useRuleLink } from "../../state/rule-link.ts";
import { usePageLink } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";

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
