import { DAY_MS } from "#lib/units.ts";
import type { RuleFacts } from "../../api/rule.ts";
import { DataTable } from "../../components/data-table.tsx";
import { TimeSeries } from "../../components/lazy-time-series.tsx";
import { Panel } from "../../components/panel.tsx";
import { Empty } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";

const SHOWN = 10;

/** The platform's own daily counts beside the stored events. */
export function PlatformCounts({ days }: Pick<RuleFacts, "days">) {
  return (
    <Panel title="Platform's counts and ours" about="per UTC day, 28 days" flush>
      {days.length === 0 ? (
        <Empty>The platform's counts of this rule were not read yet.</Empty>
      ) : (
        <Counts days={days} />
      )}
    </Panel>
  );
}

function Counts({ days }: Pick<RuleFacts, "days">) {
  const both = days.filter(({ platform, stored }) => platform !== null && stored > 0);
  const differing = both.filter(({ platform, stored }) => platform !== stored);
  const stored = { id: "stored", label: "stored", colour: "var(--lw-accent)" };
  const platform = { id: "platform", label: "the platform", colour: "var(--lw-warn)" };
  return (
    <>
      <TimeSeries
        timesMs={days.map(({ day }) => Date.parse(day))}
        widthMs={DAY_MS}
        series={[{ ...stored, values: days.map((day) => day.stored) }]}
        lines={[{ ...platform, values: days.map((day) => day.platform) }]}
        height={140}
        label={`Stored events and the platform's own counts of ${days.length} days`}
      />
      <div className="lw-hint">
        {differing.length === 0
          ? `On each of the ${both.length} days that both know, the counts are equal.`
          : `The counts differ on ${differing.length} of ${both.length} days. The platform's daily counts may be late or inexact.`}
      </div>
      {differing.length === 0 ? null : (
        <DataTable
          rows={differing.slice(-SHOWN)}
          idOf={({ day }) => day}
          columns={[
            { head: "day (UTC)", cell: ({ day }) => day },
            { head: "the platform", className: "lw-number", cell: (day) => formatCount(day.platform ?? 0) },
            { head: "stored", className: "lw-number", cell: (day) => formatCount(day.stored) },
          ]}
        />
      )}
    </>
  );
}
