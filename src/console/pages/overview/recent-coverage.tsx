import { Link } from "wouter";
import type { CoverageHour } from "../../../http/routes/v1/coverage.ts";
import { HOUR_MS } from "../../../lib/units.ts";
import { type CoverageDay, useCoverageDays, useCoverageHours } from "../../api/coverage.ts";
import type { Zone } from "../../api/status.ts";
import { Moment } from "../../components/ago.tsx";
import { CoverageStrip, countStates } from "../../components/coverage-strip.tsx";
import { Panel } from "../../components/panel.tsx";
import { QueryView } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { useNow } from "../../state/now.tsx";
import { usePageLink } from "../../state/url-state.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";
import classes from "./overview.module.css";

const HOURS = 72;

/** Whether the hours that the platform still has are proven, zone by zone. */
export function RecentCoverage() {
  const { zones, only } = useZones();
  const nowMs = useNow();
  const zone = only?.id ?? null;
  const query = useCoverageHours({ zone, fromMs: nowMs - (HOURS - 1) * HOUR_MS, toMs: nowMs });
  const days = useCoverageDays(zone).data?.items ?? [];
  return (
    <Panel title="Coverage" about={`last ${HOURS} hours, one mark per hour; below, every kept day`} flush>
      <QueryView query={query} asking="the hours of every zone">
        {(hours) =>
          zones.map((shown) => (
            <ZoneStrip
              key={shown.id}
              zone={shown}
              hours={hours.filter(({ zoneId }) => zoneId === shown.id)}
              days={days.filter(({ zoneId }) => zoneId === shown.id)}
            />
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
  readonly zone: Zone;
  readonly hours: readonly CoverageHour[];
  readonly days: readonly CoverageDay[];
}

function ZoneStrip({ zone, hours, days }: ZoneProps) {
  const link = usePageLink();
  const name = zoneTitle(zone);
  const cells = hours.map(({ startsAt, state, storedCount, upstreamCount, gapReason }) => ({
    startsAtMs: Date.parse(startsAt),
    state,
    note: [
      `${formatCount(storedCount)} stored${upstreamCount === null ? "" : `, the platform counts ${formatCount(upstreamCount)}`}`,
      ...(gapReason === null ? [] : [gapReason]),
    ].join("\n"),
  }));
  return (
    <div className={classes["zone"]}>
      <Link
        href={link("/coverage", { zone: String(zone.id) })}
        className={classes["zoneName"] ?? ""}
        title={name}
      >
        {name}
      </Link>
      <CoverageStrip cells={cells} label={name} />
      <div className={classes["zoneNote"]}>
        <CoverageStrip cells={days.map(toDayCell)} label={`${name}, by day`} height={8} />
        {countStates(cells)}. {formatCount(days.reduce((sum, { stored }) => sum + stored, 0))} events kept
        since <Moment at={zone.firstHour} />.
      </div>
    </div>
  );
}
