import { Link } from "wouter";
import type { CoverageHour } from "../../../http/routes/v1/coverage.ts";
import { HOUR_MS } from "../../../lib/units.ts";
import { useCoverageHours } from "../../api/coverage.ts";
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
  const query = useCoverageHours({
    zone: only?.id ?? null,
    fromMs: nowMs - (HOURS - 1) * HOUR_MS,
    toMs: nowMs,
  });
  return (
    <Panel title="Coverage" about={`last ${HOURS} hours, one mark per hour`} flush>
      <QueryView query={query} asking="the hours of every zone">
        {(hours) =>
          zones.map((zone) => (
            <ZoneStrip key={zone.id} zone={zone} hours={hours.filter(({ zoneId }) => zoneId === zone.id)} />
          ))
        }
      </QueryView>
    </Panel>
  );
}

function ZoneStrip({ zone, hours }: { readonly zone: Zone; readonly hours: readonly CoverageHour[] }) {
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
        {countStates(cells)}. Kept since <Moment at={zone.firstHour} />.
      </div>
    </div>
  );
}
