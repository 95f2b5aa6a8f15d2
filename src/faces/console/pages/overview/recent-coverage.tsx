import { Link } from "wouter";
import { type CoverageDay, useCoverageDays } from "../../api/coverage.ts";
import { type Overview, useOverview } from "../../api/overview.ts";
import { Moment } from "../../components/ago.tsx";
import { CoverageStrip, countStates, StripAxis, ZoneStrips } from "../../components/coverage-strip.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { toDayCells } from "../../components/zoom-cells.ts";
import { formatCount } from "../../look/words.ts";
import { usePageLink } from "../../state/url-state.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";

/** Whether the hours that the platform still has are proven, zone by zone. */
export function RecentCoverage() {
  const days = useCoverageDays(useZones().only?.id ?? null).data?.items ?? [];
  return (
    <QueryPanel
      title="Coverage"
      about="last 72 hours, one mark per hour; below, every kept day"
      query={useOverview()}
    >
      {({ zones }) =>
        zones.map((zone) => (
          <ZoneStrip key={zone.id} zone={zone} days={days.filter(({ zoneId }) => zoneId === zone.id)} />
        ))
      }
    </QueryPanel>
  );
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
  const starts = days.map(({ day }) => Date.parse(day));
  const ofDays = toDayCells(days, {
    fromMs: Math.min(...starts),
    toMs: Math.max(...starts) + 1,
    unit: "day",
  });
  const href = link("/coverage", { zone: String(zone.id), span: "72h", from: null, to: null });
  const toEvidence = (
    <Link href={href} title={`Evidence of every hour of ${name}`}>
      {name}
    </Link>
  );
  return (
    <ZoneStrips name={toEvidence}>
      <CoverageStrip cells={cells} label={name} />
      <StripAxis starts={cells.map(({ startsAtMs }) => startsAtMs)} unit="hour" isShort />
      <CoverageStrip cells={ofDays} label={`${name}, by day`} height={8} />
      <div className="lw-note">
        {countStates(cells)}. {formatCount(days.reduce((sum, { stored }) => sum + stored, 0))} events kept
        since <Moment at={zone.firstHour} />.
      </div>
    </ZoneStrips>
  );
}
