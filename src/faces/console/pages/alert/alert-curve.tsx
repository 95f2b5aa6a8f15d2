import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { AlertContext, AlertDetail } from "../../api/alert.ts";
import { useRuleSeries } from "../../api/rule.ts";
import { toDetectorChart } from "../../components/detector-lines.ts";
import { chartHeight, TimeSeries } from "../../components/lazy-time-series.tsx";
import { Panel } from "../../components/panel.tsx";
import { QueryView } from "../../components/states.tsx";
import { useNow } from "../../state/now.tsx";

const PLOT_PX = 170;

const BEFORE_MS = HOUR_MS;
const LONGEST_MS = 12 * HOUR_MS;

interface Props extends Pick<AlertContext, "during"> {
  readonly alert: AlertDetail;
}

/** The counts of the alert's rule around the alert, with what the detector expected. */
export function AlertCurve({ alert, during }: Props) {
  const { zoneId, ruleId, firedAt, resolvedAt, id } = alert;
  const nowMs = useNow();
  const firedMs = Date.parse(firedAt);
  const endMs = resolvedAt === null ? nowMs : Math.min(Date.parse(resolvedAt) + BEFORE_MS / 2, nowMs);
  const from = firedMs - BEFORE_MS;
  const to = Math.floor(Math.min(endMs, from + LONGEST_MS) / MINUTE_MS) * MINUTE_MS;
  const series = useRuleSeries({ zone: zoneId, rule: ruleId, width: "minute", from, to });
  if (zoneId === null || ruleId === null) return null;
  return (
    <Panel title="Events per minute" about="from one hour before the alert" flush>
      <QueryView query={series} height={chartHeight(PLOT_PX)} asking="the counts of the rule">
        {({ points }) => (
          <TimeSeries
            {...toDetectorChart(points, during)}
            widthMs={MINUTE_MS}
            markers={[
              { atMs: firedMs, kind: "opened" },
              ...(resolvedAt === null ? [] : [{ atMs: Date.parse(resolvedAt), kind: "resolved" as const }]),
            ]}
            height={PLOT_PX}
            label={`Events per minute of rule ${ruleId} around alert ${id}, with the expected count and the threshold`}
          />
        )}
      </QueryView>
    </Panel>
  );
}
