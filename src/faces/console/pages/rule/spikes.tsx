import { Link } from "wouter";
import { formatDuration } from "#lib/format.ts";
import { useAlertContext } from "../../api/alert.ts";
import type { RuleKey, RuleSeries } from "../../api/rule.ts";
import { Moment } from "../../components/ago.tsx";
import { Compared } from "../../components/compared.tsx";
import { PageEventsContext } from "../../components/filter-value.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Rows } from "../../components/rows.tsx";
import { Severity } from "../../components/severity.tsx";
import { QueryView } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { useNow } from "../../state/now.tsx";
import { usePageLink, useUrlState } from "../../state/url-state.ts";
import { toSpanParams } from "../alert/event-filter.ts";
import classes from "./rule.module.css";
import { useCurve } from "./use-curve.ts";

type Spike = RuleSeries["spikes"][number];
const SHOWN = 20;

/** The spikes of the span, and who, where and what of the chosen one. */
export function Spikes(key: RuleKey) {
  const { series } = useCurve(key);
  const { params } = useUrlState();
  if (series.data === undefined) return null;
  const spikes = series.data.spikes.toReversed();
  const chosen = spikes.find(({ id }) => String(id) === params.get("spike")) ?? spikes[0];
  return (
    <>
      <Panel title="Spikes" about="in the span, newest first" flush>
        <Rows
          of={spikes.slice(0, SHOWN)}
          none="The detector found no spike in this span. Choose a longer span in the header."
        >
          {(spike) => <SpikeRow key={spike.id} spike={spike} isChosen={spike === chosen} />}
        </Rows>
        {spikes.length > SHOWN ? (
          <div className="lw-hint">{spikes.length - SHOWN} more: narrow the span to see them.</div>
        ) : null}
      </Panel>
      {chosen === undefined || chosen.alertId === null ? null : (
        <During alertId={chosen.alertId} spike={chosen} of={key} />
      )}
    </>
  );
}

function SpikeRow({ spike, isChosen }: { readonly spike: Spike; readonly isChosen: boolean }) {
  const { id, openedAt, closedAt, severity, mark, peak, alertId, verdict } = spike;
  const nowMs = useNow();
  const link = usePageLink();
  const { change } = useUrlState();
  const lastedMs = (closedAt === null ? nowMs : Date.parse(closedAt)) - Date.parse(openedAt);
  return (
    <li data-chosen={isChosen || undefined} className={classes["spike"]}>
      <span>
        <Severity severity={severity} state={closedAt === null ? "firing" : "resolved"} />{" "}
        <Moment at={openedAt} /> · {closedAt === null ? "since " : ""}
        {formatDuration(lastedMs)}, peak {formatCount(peak)}
        <Payload say=" · " prose text={verdict} />
        {mark === null ? "" : ` · marked as ${mark}`}
      </span>
      <span className="lw-bar">
        {isChosen || alertId === null ? null : (
          <button
            type="button"
            className="lw-pick"
            onClick={() => change({ spike: String(id) }, { replace: true })}
          >
            who, where, what
          </button>
        )}
        {alertId === null ? null : <Link href={link(`/alerts/${alertId}`)}>alert {alertId}</Link>}
      </span>
    </li>
  );
}

interface DuringProps {
  readonly alertId: number;
  readonly spike: Pick<Spike, "openedAt" | "closedAt">;
  readonly of: RuleKey;
}

function During({ alertId, spike: { openedAt, closedAt }, of: { zone, rule } }: DuringProps) {
  const context = useAlertContext(String(alertId));
  const nowMs = useNow();
  const span = toSpanParams(Date.parse(openedAt), closedAt === null ? nowMs : Date.parse(closedAt));
  const events = {
    filters: [{ kind: "is" as const, field: "rule" as const, value: rule }],
    params: { ...span, zone: String(zone) },
  };
  return (
    <QueryView query={context} rows={4} asking="the events of the spike">
      {(found) => (
        <PageEventsContext value={events}>
          <Compared context={found} what="the spike" />
        </PageEventsContext>
      )}
    </QueryView>
  );
}
