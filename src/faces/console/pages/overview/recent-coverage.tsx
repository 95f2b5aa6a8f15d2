import { Link } from "wouter";
import { type CoverageDay, useCoverageDays } from "../../api/coverage.ts";
import { type Overview, useOverview } from "../../api/overview.ts";
import { Moment } from "../../components/ago.tsx";
import { CoverageStrip, countStates, StripAxis } from "../../components/coverage-strip.tsx";
import { Panel } from "../../components/panel.tsx";
import { QueryView } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { usePageLink } from "../../state/url-state.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";
import classes from "./overview.module.css";

/** Whether the hours that the platform still has are proven, zone by zone. */
export function RecentCoverage() {
  const { only } = useZones();
  const overview = useOverview();
  const days = useCoverageDays(only?.id ?? null).data?.items ?? [];
  return (
    <Panel title="Coverage" about="last 72 hours, one mark per hour; below, every kept day" flush>
      <QueryView query={overview} asking="the hours of every zone">
        {({ zones }) =>
          zones.map((zone) => (
            <ZoneStrip key={zone.id} zone={zone} days={days.filter(({ zoneId }) => zoneId === zone.id)} />
          ))
        }
      </QueryView>
    </Panel>
  );
}

/** The state of a day is that of its worst hour. */
function toDayCell({ day, sealed, open, gap, stored }: CoverageDay) {
  const state = gap > 0 ? "gap" : open > 0 ? "open" : sealed > 0 ? "sealed" : "unwatched";
  const hours = `${sealed} hours sealed, ${open} open, ${gap} lost`;
  return { startsAtMs: Date.parse(day), state, note: `${hours}; ${formatCount(stored)} events` } as const;
}

interface ZoneProps {
  readonly zone: Overview["zones"][number];
  readonly days: readonly CoverageDay[];
}

function ZoneStrip({ zone, days }: ZoneProps) {
  const link = usePageLink();
  const name = zoneTitle(zone);
  const cells = zone.hours.map(({ startsAtMs, state, stored }) => ({
    startsAtMs,
    state,
    note: `${formatCount(stored)} events stored`,
  }));
  return (
    <div className={classes["zone"]}>
      <Link
        className={classes["zoneName"] ?? ""}
        href={link("/coverage", { zone: String(zone.id), span: "72h", from: null, to: null })}
        title={`Evidence of every hour of ${name}`}
      >
        {name}
      </Link>
      <div>
        <CoverageStrip cells={cells} label={name} />
        <StripAxis starts={cells.map(({ startsAtMs }) => startsAtMs)} unit="hour" isShort />
      </div>
      <div className={classes["zoneNote"]}>
        <CoverageStrip cells={days.map(toDayCell)} label={`${name}, by day`} height={8} />
        {countStates(cells)}. {formatCount(days.reduce((sum, { stored }) => sum + stored, 0))} events kept
        since <Moment at={zone.firstHour} />.
      </div>
    </div>
  );
}
