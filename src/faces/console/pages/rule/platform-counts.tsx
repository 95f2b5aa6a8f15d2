import { DAY_MS } from "#lib/units.ts";
import type { RuleFacts } from "../../api/rule.ts";
import { TimeSeries } from "../../components/lazy-time-series.tsx";
import { Panel } from "../../components/panel.tsx";
import { Empty } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import classes from "./rule.module.css";

const SHOWN = 10;

/** The platform's own daily counts beside the stored events. */
export function PlatformCounts({ days }: Pick<RuleFacts, "days">) {
  const both = days.filter(({ platform, stored }) => platform !== null && stored > 0);
  const differing = both.filter(({ platform, stored }) => platform !== stored);
  const about = "per UTC day, 28 days";
  if (days.length === 0)
    return (
      <Panel title="Platform's counts and ours" about={about} flush>
        <Empty>The platform's counts of this rule were not read yet.</Empty>
      </Panel>
    );
  return (
    <Panel title="Platform's counts and ours" about={about} flush>
      <TimeSeries
        timesMs={days.map(({ day }) => Date.parse(day))}
        widthMs={DAY_MS}
        series={[
          {
            id: "stored",
            label: "stored",
            colour: "var(--lw-accent)",
            values: days.map(({ stored }) => stored),
          },
        ]}
        lines={[
          {
            id: "platform",
            label: "the platform",
            colour: "var(--lw-warn)",
            values: days.map(({ platform }) => platform),
          },
        ]}
        height={140}
        label={`Stored events and the platform's own counts of ${days.length} days`}
      />
      <p className={classes["hint"]}>
        {differing.length === 0
          ? `On each of the ${both.length} days that both know, the counts are equal.`
          : `The counts differ on ${differing.length} of ${both.length} days. The platform's daily counts may be late or inexact.`}
      </p>
      {differing.length === 0 ? null : (
        <table className="lw-table">
          <thead>
            <tr>
              <th>day (UTC)</th>
              <th className="lw-number">the platform</th>
              <th className="lw-number">stored</th>
            </tr>
          </thead>
          <tbody>
            {differing.slice(-SHOWN).map(({ day, platform, stored }) => (
              <tr key={day}>
                <td>{day}</td>
                <td className="lw-number">{formatCount(platform ?? 0)}</td>
                <td className="lw-number">{formatCount(stored)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}
