/** The page of coverage: the strip of hours. */

import { useState } from "react";
import { many, showIso } from "#lib/format.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { HOUR_STATUSES } from "#model/kinds.ts";
import { type Item, useChange, useOperation, useOperationPages } from "../api/ask.ts";
import { useOfZones } from "../api/of-zones.ts";
import { useCoverageDays } from "../api/queries.ts";
import { ActButton, SubtleButton } from "../components/buttons.tsx";
import {
  CoverageStrip,
  countStates,
  STATE_WORDS,
  StripAxis,
  ZoneStrips,
} from "../components/coverage-strip.tsx";
import { Moment, Rows } from "../components/facts.tsx";
import { PagedPanel, Panel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { Empty, FailedZones, Partial, ProblemBox, QueryView } from "../components/states.tsx";
import { pickUnit, toDayCells, toHourCells, type ZoomCell } from "../components/zoom-cells.ts";
import { useNow } from "../state/now.tsx";
import { useSpan } from "../state/span.ts";
import { useUrlState } from "../state/url-state.ts";
import { useZones, useZoneTitle, zoneTitle } from "../state/zones.ts";
import { formatBytes, formatMoment } from "../style/words.ts";
import { ArchiveDays } from "./coverage-page/archive-days.tsx";
import classes from "./coverage-page/coverage.module.css";
import { Destinations } from "./coverage-page/destinations.tsx";
import { HourPanel } from "./coverage-page/hour-panel.tsx";
import { Runs } from "./coverage-page/runs.tsx";

const HOUR = /^(\d{1,10})\/(\d{4}-\d\d-\d\dT\d\d:00:00Z)$/;

/** Whether every hour that was watched is complete, and the evidence for it. */
export default function CoveragePage() {
  const { params } = useUrlState();
  const [, zone = "", hour = ""] = HOUR.exec(params.get("hour") ?? "") ?? [];
  const hourMs = Date.parse(hour);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Coverage</h1>
      <ZoomStrip picked={Number.isNaN(hourMs) ? null : { zoneId: Number(zone), hourMs }} />
      {Number.isNaN(hourMs) ? null : (
        <HourPanel key={params.get("hour")} zoneId={Number(zone)} hourMs={hourMs} />
      )}
      <Quarantine />
      <Destinations />
      <ArchiveDays />
      <Runs />
    </div>
  );
}

const MOST_ZONES = 20;
const LONGEST_MS = 4_000 * DAY_MS;

interface Props {
  readonly picked: { readonly zoneId: number; readonly hourMs: number } | null;
}

/** Every zone over the span of the header: hours, days or months. A click goes one step deeper, an hour shows its evidence. */
function ZoomStrip({ picked }: Props) {
  const { zones: all } = useZones();
  const zones = all.slice(0, MOST_ZONES);
  const { fromMs, toMs, length, narrow, widen, choose } = useSpan();
  const { change } = useUrlState();
  const nowMs = useNow();
  const unit = pickUnit(toMs - fromMs);
  const from = Math.floor(fromMs / HOUR_MS) * HOUR_MS;
  const to = Math.ceil(toMs / HOUR_MS) * HOUR_MS;
  const hours = useOfZones("coverage.list", unit === "hour" ? zones : [], { from, to, limit: 500 });
  const longest = Math.floor(Math.max(fromMs, nowMs - LONGEST_MS) / DAY_MS) * DAY_MS;
  const days = useCoverageDays(null, unit === "hour" ? null : longest);
  const first = Math.min(...(days.data?.items ?? []).map(({ day }) => Date.parse(day)));
  const row = (zone: (typeof zones)[number], cells: readonly ZoomCell[]) => (
    <ZoneStrips key={zone.id} name={<span title={zoneTitle(zone)}>{zoneTitle(zone)}</span>}>
      <CoverageStrip
        cells={cells}
        label={`${zoneTitle(zone)}, by ${unit}`}
        unit={unit}
        height={28}
        picked={picked?.zoneId === zone.id ? picked.hourMs : null}
        onPick={({ startsAtMs, endsAtMs }) => {
          if (unit === "hour") change({ hour: `${zone.id}/${showIso(startsAtMs)}` });
          else narrow(startsAtMs, Math.min(endsAtMs, nowMs));
        }}
      />
      <StripAxis starts={cells.map(({ startsAtMs }) => startsAtMs)} unit={unit} />
      <div className="lw-note">
        {countStates(cells)} {cells.length === 1 ? unit : `${unit}s`}
      </div>
    </ZoneStrips>
  );
  return (
    <Panel
      title="Coverage"
      about={
        <>
          one mark per {unit}, {formatMoment(from)} to {formatMoment(to)} · click{" "}
          {unit === "hour" ? "an hour to see its evidence" : `a ${unit} to look into it`}
        </>
      }
      actions={
        <>
          <SubtleButton icon="zoomOut" word="Zoom out" disabled={!(first < fromMs)} onClick={widen} />
          <SubtleButton word="72 h" onClick={() => choose("72h")} />
          <SubtleButton word="Everything" disabled={!(first < nowMs)} onClick={() => narrow(first, nowMs)} />
        </>
      }
      flush
    >
      {all.length > zones.length ? (
        <Partial>The first {MOST_ZONES} zones. Choose another zone in the header.</Partial>
      ) : null}
      {unit === "hour" ? (
        <QueryView query={hours} rows={4} asking={`the hours of ${zones.length} zones`}>
          {({ answers, failed }) => (
            <>
              <FailedZones of={failed} say="Zones are missing." />
              {answers.every(({ answer }) => answer.items.length === 0) ? (
                <Empty>Nothing was watched in this span. Zoom out, or choose Everything.</Empty>
              ) : (
                answers.map(({ zone, answer }) =>
                  row(zone, toHourCells(answer.items, { fromMs: from, toMs: to })),
                )
              )}
            </>
          )}
        </QueryView>
      ) : (
        <QueryView query={days} rows={4} asking={`${length} of ${zones.length} zones`}>
          {({ items }) =>
            zones.map((zone) => {
              const mine = items.filter(({ zoneId, day }) => zoneId === zone.id && Date.parse(day) < toMs);
              return mine.length === 0 ? null : row(zone, toDayCells(mine, { fromMs, toMs, unit }));
            })
          }
        </QueryView>
      )}
      <Legend />
    </Panel>
  );
}

function Legend() {
  return (
    <div className="lw-facts lw-hint lw-line">
      {HOUR_STATUSES.filter((one) => one !== "not yet").map((state) => (
        <span key={state}>
          <span className={classes["mark"]}>
            <CoverageStrip cells={[{ startsAtMs: 0, state }]} label={state} height={12} />
          </span>{" "}
          {STATE_WORDS[state]}
        </span>
      ))}
    </div>
  );
}

type Entry = Item<"quarantine.list">;

/** The entries of the platform that could not be stored. Nothing is shown without one. */
function Quarantine() {
  const { asked, only, isShown } = useZones();
  const entries = useOperationPages(
    "quarantine.list",
    { zone: asked, limit: 10 },
    { refetchInterval: 60_000 },
  );
  const retry = useChange("quarantine.retry");
  const first = entries.data?.pages[0]?.items.filter(({ zoneId }) => isShown(zoneId));
  if (first?.length === 0 && retry.data === undefined) return null;
  const { stored, kept } = retry.data ?? { stored: 0, kept: 0 };
  return (
    <PagedPanel
      title="Quarantine"
      what="entries"
      about="entries of the platform that could not be stored"
      query={entries}
      actions={
        only === null ? null : <ActButton word="Try all again" change={retry} input={{ zone: only.id }} />
      }
      isShown={({ zoneId }) => isShown(zoneId)}
      none="No entry is in quarantine."
      before={
        <>
          <ProblemBox thrown={retry.error} />
          {retry.data === undefined ? null : (
            <div className="lw-hint lw-note" role="status">
              {many(stored, "entry", "entries")} stored, {kept} kept.
            </div>
          )}
        </>
      }
    >
      {(items) => <Rows of={items}>{(one) => <EntryRow key={one.id} entry={one} retry={retry} />}</Rows>}
    </PagedPanel>
  );
}

interface RowProps {
  readonly entry: Entry;
  readonly retry: ReturnType<typeof useChange<"quarantine.retry">>;
}

function EntryRow({ entry: { id, zoneId, receivedAt, route, day, reason, bytes, isHeld }, retry }: RowProps) {
  const zoneName = useZoneTitle();
  return (
    <li data-quarantined={id}>
      <div>
        <b>#{id}</b> {zoneName(zoneId)}
        <div className="lw-note">
          <Moment at={receivedAt} />, {day === null ? route : `${route} ${day}`}, {formatBytes(bytes)}:{" "}
          <Payload prose text={reason} />
        </div>
      </div>
      <ActButton word="Try again" label={`Try again: entry ${id}`} change={retry} input={{ ids: [id] }} />
      {isHeld ? <div className="lw-across lw-note">It waits for the pseudonym key.</div> : <Whole id={id} />}
    </li>
  );
}

/** The text of an entry, which is read when it is opened. */
function Whole({ id }: { readonly id: number }) {
  const [isOpen, setOpen] = useState(false);
  const entry = useOperation("quarantine.show", { id }, { enabled: isOpen });
  return (
    <details className="lw-across" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className="lw-note">Text</summary>
      {isOpen ? (
        <QueryView query={entry} rows={2} asking="the entry">
          {({ text, isCut }) => (
            <>
              <Payload text={text ?? ""} none="Your key may not read records." />
              {isCut ? <div className="lw-note">The text goes on: longwatch quarantine show {id}</div> : null}
            </>
          )}
        </QueryView>
      ) : null}
    </details>
  );
}
