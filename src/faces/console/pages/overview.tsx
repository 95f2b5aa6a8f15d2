/** The overview: what is read and what is proven. */

import { useMemo } from "react";
import { Link } from "wouter";
import type { Output } from "#faces/console/api/ask.ts";
import { useCompleteness } from "#faces/console/api/of-zones.ts";
import {
  type CoverageDay,
  type Overview,
  useAlerts,
  useCoverageDays,
  useOverview,
} from "#faces/console/api/queries.ts";
import { toMarkers } from "#faces/console/components/chart-lines.ts";
import { ActionChart, chartHeight } from "#faces/console/components/charts.tsx";
import {
  CoverageStrip,
  countStates,
  StripAxis,
  ZoneStrips,
} from "#faces/console/components/coverage-strip.tsx";
import { Ago, Fact, Moment } from "#faces/console/components/facts.tsx";
import { Now, QueryPanel } from "#faces/console/components/panel.tsx";
import { Completeness, Empty, FailedZones } from "#faces/console/components/states.tsx";
import { toDayCells } from "#faces/console/components/zoom-cells.ts";
import { useSpan } from "#faces/console/state/span.ts";
import { usePageLink } from "#faces/console/state/url-state.ts";
import { useStatus, useZones, type Zone, zoneTitle } from "#faces/console/state/zones.ts";
import { formatBytes, formatCount, formatLength } from "#faces/console/style/words.ts";
import { formatDuration, many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { ACTION_CLASSES, SPIKE_KINDS } from "#model/kinds.ts";
import { describeLearning } from "#model/rules.ts";
import { useOverviewOf } from "../api/queries.ts";
import { useAgainst } from "../components/charts.tsx";
import { Attention } from "./overview/attention.tsx";
import { Against, ChangedRules } from "./overview/changed-rules.tsx";
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

const ALWAYS = ACTION_CLASSES.filter((name) => name !== "other");

const PLOT_PX = 190;

/** Events over time by action, with the alerts of the span on it. */
function EventChart() {
  const { zones, only, isShown } = useZones();
  const span = useSpan();
  const { length } = span;
  const overview = useOverview();
  const known = useCompleteness(zones, span).data;
  const alerts = useAlerts({
    since: Math.floor(span.fromMs),
    until: Math.ceil(span.toMs),
    kind: SPIKE_KINDS,
    limit: 200,
    zone: only?.id ?? null,
  }).data?.items;
  const { data } = overview;
  const { words, menu, ...other } = useAgainst({ zones, ...span });
  const before = useOverviewOf(other).data;
  const against = useMemo(
    () => (before === undefined || words === null ? null : { words, ...sumUp(before) }),
    [before, words],
  );
  const counted = useMemo(() => (data === undefined ? null : sumUp(data)), [data]);
  const markers = useMemo(
    () =>
      toMarkers(
        (alerts ?? [])
          // An incident's rules would be many marks of one attack.
          .filter(({ zoneId, incidentId }) => zoneId !== null && isShown(zoneId) && incidentId === null)
          .map(({ firedAt, resolvedAt }) => [firedAt, resolvedAt]),
      ),
    [alerts, zones],
  );
  const about =
    counted === null ? null : (
      <>
        per {formatLength(counted.widthMs).replace(/^1 (?=\w)/, "")} · {length}
        <Completeness of={known?.completeness} zones={zones.length} />
      </>
    );
  return (
    <QueryPanel
      title="Events by action"
      about={about}
      actions={menu}
      query={overview}
      height={chartHeight(PLOT_PX)}
      asking={`${length} of ${zones.length} zones`}
    >
      {() =>
        counted === null ? null : (
          <>
            <FailedZones of={known?.failed} say="Coverage is missing." />
            {counted.total === 0 ? (
              <Empty>No event in this span. Choose a longer span in the header.</Empty>
            ) : null}
            <ActionChart
              {...counted}
              against={against}
              always={ALWAYS}
              known={known}
              markers={markers}
              height={PLOT_PX}
              label={`${formatCount(counted.total)} events over ${length}, by action; ${markers.length} alert marks`}
            />
          </>
        )
      }
    </QueryPanel>
  );
}

/** Adds the zones up. Steps without events are not in the answer, and are zero. */
function sumUp({ zones, from, to, stepSeconds }: Overview) {
  const widthMs = stepSeconds * 1_000;
  const firstMs = Math.floor(Date.parse(from) / widthMs) * widthMs;
  const steps = Math.max(0, Math.ceil((Date.parse(to) - firstMs) / widthMs));
  const zeros = () => Array.from({ length: steps }, () => 0);
  const counts = { blocked: zeros(), challenged: zeros(), logged: zeros(), other: zeros() };
  let total = 0;
  for (const { startsAtMs, ...point } of zones.flatMap(({ points }) => points)) {
    const step = Math.round((startsAtMs - firstMs) / widthMs);
    if (step < 0 || step >= steps) continue;
    for (const name of ACTION_CLASSES) {
      counts[name][step] = (counts[name][step] ?? 0) + point[name];
      total += point[name];
    }
  }
  return { widthMs, counts, timesMs: zeros().map((_, step) => firstMs + step * widthMs), total };
}
