/** The overview: what is read and what is proven. */

import { Link } from "wouter";
import { formatDuration, many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { describeLearning } from "#model/rules.ts";
import type { Output } from "../api/ask.ts";
import { type CoverageDay, type Overview, useCoverageDays, useOverview } from "../api/queries.ts";
import { CoverageStrip, countStates, StripAxis, ZoneStrips } from "../components/coverage-strip.tsx";
import { Ago, Fact, Moment } from "../components/facts.tsx";
import { Now, QueryPanel } from "../components/panel.tsx";
import { toDayCells } from "../components/zoom-cells.ts";
import { usePageLink } from "../state/url-state.ts";
import { useStatus, useZones, type Zone, zoneTitle } from "../state/zones.ts";
import { formatBytes, formatCount } from "../style/words.ts";
import { Attention } from "./overview/attention.tsx";
import { Against, ChangedRules } from "./overview/changed-rules.tsx";
import { EventChart } from "./overview/event-chart.tsx";
import classes from "./overview/overview.module.css";

/** Is anything wrong, and is the record whole? */
export default function OverviewPage() {
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Overview</h1>
      <Attention />
      <EventChart />
      <div className={classes["columns"]}>
        <ChangedRules />
        <RecentCoverage />
      </div>
      <Against />
      <IngestLine />
    </div>
  );
}

/** How fresh the record is, zone by zone. */
function IngestLine() {
  const { zones } = useZones();
  const budget = useOverview().data?.requestBudget ?? null;
  return (
    <QueryPanel title="Ingest" query={useStatus()}>
      {({ notificationsPending, archive }) => (
        <>
          {zones.map((zone) => (
            <ZoneLine key={zone.id} zone={zone} archive={archive.find(({ zoneId }) => zoneId === zone.id)} />
          ))}
          <div className="lw-facts lw-hint">
            {budget === null ? null : (
              <span>
                requests to the platform:{" "}
                <b>{budget.isPaused ? "paused" : `${formatCount(Math.floor(budget.tokens))} allowed`}</b>{" "}
                <Now />, then <b>{formatCount(budget.ratePerSecond)}</b> a second
              </span>
            )}
            {notificationsPending > 0 ? (
              <span>
                <b>{formatCount(notificationsPending)}</b> notifications wait
              </span>
            ) : null}
          </div>
        </>
      )}
    </QueryPanel>
  );
}

interface ZoneProps {
  readonly zone: Zone;
  readonly archive: Output<"status.show">["archive"][number] | undefined;
}

function ZoneLine({ zone, archive }: ZoneProps) {
  const { searchedThrough, newestEventAt, recentEvents, hoursToLoss, learningUntil } = zone;
  return (
    <div className="lw-facts lw-hint">
      <b>{zoneTitle(zone)}</b>
      <Fact say="last poll">{searchedThrough === null ? "never" : <Ago at={searchedThrough} />}</Fact>
      <Fact say="newest event">{newestEventAt === null ? "none" : <Ago at={newestEventAt} />}</Fact>
      <Fact say="stored in 4 days">{formatCount(recentEvents)} events</Fact>
      {archive === undefined ? null : (
        <span>
          archive{" "}
          <b>
            {many(archive.days, "day")}, {formatBytes(archive.eventBytes + archive.recordBytes)}
          </b>
          {archive.damagedFiles === 0 ? null : (
            <b className="lw-fire">, {formatCount(archive.damagedFiles)} files damaged</b>
          )}
        </span>
      )}
      {learningUntil === null ? null : <span>{describeLearning(Date.parse(learningUntil))}</span>}
      {hoursToLoss === null ? <span>no hour can be lost</span> : null}
      <Fact say="oldest open hour is deleted in">
        {hoursToLoss === null ? null : formatDuration(hoursToLoss * HOUR_MS)}
      </Fact>
    </div>
  );
}

/** Whether the hours that the platform still has are proven, zone by zone. */
function RecentCoverage() {
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

interface ZoneStripProps {
  readonly zone: Overview["zones"][number];
  readonly days: readonly CoverageDay[];
}

function ZoneStrip({ zone, days }: ZoneStripProps) {
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
