import { Button } from "@mantine/core";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { HOUR_STATUSES } from "#model/kinds.ts";
import { useCoverageDays, useCoverageHours } from "../../api/coverage.ts";
import { CoverageStrip, countStates, STATE_WORDS, StripAxis } from "../../components/coverage-strip.tsx";
import { Panel } from "../../components/panel.tsx";
import { Empty, Partial, QueryView } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import { formatLength, formatMoment } from "../../look/words.ts";
import { useNow } from "../../state/now.tsx";
import { toUrlTime, useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";
import classes from "./coverage.module.css";
import { pickUnit, toDayCells, toHourCells, type ZoomCell } from "./zoom-cells.ts";

const MOST_ZONES = 20;
const LONGEST_MS = 4_000 * DAY_MS;

interface Props {
  readonly picked: { readonly zoneId: number; readonly hourMs: number } | null;
}

/** Every zone over the span of the header: hours, days or months. A click goes one step deeper, an hour shows its evidence. */
export function ZoomStrip({ picked }: Props) {
  const { zones: all } = useZones();
  const zones = all.slice(0, MOST_ZONES);
  const { fromMs, toMs, narrow, widen, choose } = useSpan();
  const { change } = useUrlState();
  const nowMs = useNow();
  const unit = pickUnit(toMs - fromMs);
  const from = Math.floor(fromMs / HOUR_MS) * HOUR_MS;
  const to = Math.ceil(toMs / HOUR_MS) * HOUR_MS;
  const hours = useCoverageHours(unit === "hour" ? zones : [], { from, to });
  const longest = Math.floor(Math.max(fromMs, nowMs - LONGEST_MS) / DAY_MS) * DAY_MS;
  const days = useCoverageDays(null, unit === "hour" ? null : longest);
  const first = Math.min(...(days.data?.items ?? []).map(({ day }) => Date.parse(day)));
  const open = (zoneId: number, { startsAtMs, endsAtMs }: ZoomCell) => {
    if (unit === "hour") change({ hour: `${zoneId}/${toUrlTime(startsAtMs)}` });
    else narrow(startsAtMs, Math.min(endsAtMs, nowMs));
  };
  const row = (zone: (typeof zones)[number], cells: readonly ZoomCell[]) => (
    <div key={zone.id} className={classes["zone"]}>
      <span className={classes["name"]} title={zoneTitle(zone)}>
        {zoneTitle(zone)}
      </span>
      <div>
        <CoverageStrip
          cells={cells}
          label={`${zoneTitle(zone)}, by ${unit}`}
          unit={unit}
          height={28}
          picked={picked?.zoneId === zone.id ? picked.hourMs : null}
          onPick={(cell) => {
            const found = cells.find(({ startsAtMs }) => startsAtMs === cell.startsAtMs);
            if (found !== undefined) open(zone.id, found);
          }}
        />
        <StripAxis starts={cells.map(({ startsAtMs }) => startsAtMs)} unit={unit} />
        <div className="lw-note">
          {countStates(cells)} {cells.length === 1 ? unit : `${unit}s`}
        </div>
      </div>
    </div>
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
          <Button
            variant="default"
            leftSection={<Icon name="zoomOut" size={13} />}
            disabled={!(first < fromMs)}
            onClick={widen}
          >
            Zoom out
          </Button>
          <Button variant="default" onClick={() => choose("72h")}>
            72 h
          </Button>
          <Button variant="default" disabled={!(first < nowMs)} onClick={() => narrow(first, nowMs)}>
            Everything
          </Button>
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
              {failed.length > 0 ? (
                <Partial>
                  {failed
                    .map(({ zone, problem }) => `${zoneTitle(zone)} is missing: ${problem.message}`)
                    .join(" ")}
                </Partial>
              ) : null}
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
        <QueryView query={days} rows={4} asking={`${formatLength(toMs - fromMs)} of ${zones.length} zones`}>
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
    <div className={classes["legend"]}>
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
